"""Tests that need a newer Kubernetes are skipped on an older one, and on no other."""

from __future__ import annotations

import json

import pytest

from kubefoundry_local.control_plane import ControlPlane
from support import kubernetes_version


@pytest.mark.parametrize(
    ("present", "needed", "older"),
    [("1.26.9", "1.31", True), ("1.31.0", "1.31", False), ("1.36.3", "1.4", False), ("2.0.0", "1.31", False)],
)
def test_versions_are_compared_by_number(present: str, needed: str, older: bool) -> None:
    assert kubernetes_version.is_older(present, needed) == older


@pytest.mark.parametrize(
    ("present", "reason"),
    [
        ("1.30.9", "selectable fields: needs Kubernetes 1.31, and this is 1.30.9"),
        ("1.31.0", ""),
    ],
)
def test_marked_test_is_skipped_with_reason_on_older_version(
    request: pytest.FixtureRequest, present: str, reason: str
) -> None:
    assert kubernetes_version.lacking(request.node, "1.0.0") == ""

    request.node.add_marker(pytest.mark.needs_kubernetes("1.31", "selectable fields"))

    assert kubernetes_version.lacking(request.node, present) == reason


@pytest.mark.integration
def test_version_is_that_of_the_api_server(cluster: ControlPlane) -> None:
    shown = json.loads(cluster.kubectl("get", "--raw", "/version").stdout)

    assert shown["gitVersion"] == f"v{kubernetes_version.version()}"


@pytest.mark.integration
def test_hook_skips_a_test_that_no_version_can_run(
    cluster: ControlPlane, request: pytest.FixtureRequest
) -> None:
    kubernetes_version.pytest_runtest_setup(request.node)

    request.node.add_marker(pytest.mark.needs_kubernetes("99.0", "a feature of the future"))

    with pytest.raises(
        pytest.skip.Exception, match=r"^a feature of the future: needs Kubernetes 99\.0, and this is "
    ):
        kubernetes_version.pytest_runtest_setup(request.node)
