"""Processes of KubeFoundry, judged by their Deployments and Leases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from kubefoundry_cli.checks.examination import components
from kubefoundry_cli.output import qualified_name
from support.fake_server import Answers, serving


def lease(holder: str, age: float | None, name: str = "kubefoundry-core") -> dict[str, Any]:
    renewed = None if age is None else (datetime.now(UTC) - timedelta(seconds=age)).isoformat()
    return {"metadata": {"name": name}, "spec": {"holderIdentity": holder, "renewTime": renewed}}


KAITO = "kubefoundry-provider-kaito"


CORE, OTHER = "kubefoundry-core", "kubefoundry-provider-other"


@pytest.mark.parametrize(
    ("name", "holder", "age", "state", "expected"),
    [
        pytest.param(
            CORE, "here-1", 1, "good", "runs outside this cluster (Lease held by here-1)", id="held"
        ),
        pytest.param(
            *(CORE, "here-1", 600, "wrong"),
            " s, and it has no Deployment in this cluster, so it does no work; start it again where it ran, "
            "or kubefoundry controller install",
            id="core stopped",
        ),
        pytest.param(CORE, "here-1", None, "wrong", "its Lease is held by nobody, and", id="never renewed"),
        pytest.param(KAITO, "", 5, "wrong", "or kubefoundry provider install kaito", id="lease released"),
        pytest.param(OTHER, "x", 600, "wrong", "or kubefoundry provider install FILE", id="third party"),
    ],
)
def test_process_outside_the_cluster_is_judged_by_its_lease(
    name: str, holder: str, age: float | None, state: str, expected: str
) -> None:
    [found] = components([], [lease(holder, age, name)])

    assert (found.state, expected in found.text) == (state, True), found


def test_cluster_without_processes_is_not_installed() -> None:
    [found] = components([], [])

    assert "no Deployment in namespace" in found.text


class Refused(Answers):
    """A cluster that refuses to list Leases."""

    def __init__(self, code: int, deployments: list[Any]) -> None:
        super().__init__()
        self.code = code
        self.objects = {
            plural: list[Any]() for plural in ("modeldeployments", "events", "inferenceproviderconfigs")
        } | {"deployments": deployments}

    def to(self, path: str) -> tuple[int, Any]:
        """Refuse Leases."""
        if path.partition("?")[0].endswith("/leases"):
            return self.code, {"kind": "Status", "code": self.code, "message": "no Leases for you"}
        return super().to(path)


UP = {
    "metadata": {"name": CORE},
    "spec": {"replicas": 1, "template": {"spec": {"containers": [{"image": "core"}]}}},
    "status": {"availableReplicas": 1},
}
"""A Deployment whose replica is available."""


@pytest.mark.parametrize(
    ("code", "deployments", "exit_code"), [(403, [], 5), (500, [], 1), (403, [UP], 0), (500, [UP], 0)]
)
def test_unreadable_leases_prove_no_missing_installation(
    call: Callable[..., Result], tmp_path: Path, code: int, deployments: list[Any], exit_code: int
) -> None:
    with serving(Refused(code, deployments), tmp_path) as kubeconfig:
        done = call("controller", "status", "--kubeconfig", str(kubeconfig))

    assert done.exit_code == exit_code, done.output
    assert done.stderr.count("\n") == 1
    assert "no Leases for you" in done.stderr
    assert "not installed" not in done.output
    assert "controller install" not in done.output
    assert ("kubefoundry-core" in done.stdout) == bool(deployments)


@pytest.mark.parametrize("deployments", [[], [UP]])
def test_doctor_calls_processes_unknown_without_leases(
    call: Callable[..., Result], tmp_path: Path, deployments: list[Any]
) -> None:
    with serving(Refused(403, deployments), tmp_path) as kubeconfig:
        done = call("doctor", "--kubeconfig", str(kubeconfig))

    assert "? cannot list leases: no Leases for you" in done.stdout
    assert ("? no Deployment in namespace kubefoundry-system" in done.stdout) == (not deployments)
    assert "✗ no Deployment" not in done.stdout


@pytest.mark.parametrize(
    ("registered", "age", "expected"),
    [
        pytest.param(["kaito"], 600, ["Lease held by here-1, not renewed for "], id="stopped"),
        pytest.param(["kaito"], 1, ["outside this cluster: Lease held by here-1"], id="running"),
        pytest.param([], 600, [], id="removed"),
    ],
)
def test_controller_status_shows_provider_outside_the_cluster(
    call: Callable[..., Result], tmp_path: Path, registered: list[str], age: float, expected: list[str]
) -> None:
    answers = Answers()
    answers.objects = {
        "deployments": [],
        "leases": [lease("here-0", 1), lease("here-1", age, KAITO)],
        "inferenceproviderconfigs": [{"metadata": {"name": name}} for name in registered],
    }
    with serving(answers, tmp_path) as kubeconfig:
        done = call("controller", "status", "--kubeconfig", str(kubeconfig))

    rows = [line for line in done.stdout.splitlines() if line.startswith(KAITO)]
    assert [text in row for text, row in zip(expected, rows, strict=True)] == [True] * len(expected), (
        done.stdout
    )
    assert done.exit_code == (1 if "not renewed" in str(expected) else 0)


@pytest.mark.parametrize("form", ["json", "yaml", "name"])
def test_controller_status_for_programs_has_processes_outside(
    call: Callable[..., Result], tmp_path: Path, form: str
) -> None:
    deployment = {
        "metadata": {"name": CORE},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"image": "core"}]}}},
        "status": {"availableReplicas": 1},
    }
    answers = Answers()
    answers.objects = {
        "deployments": [deployment],
        "leases": [lease("pod-1", 1), lease("here-1", 1, KAITO)],
        "inferenceproviderconfigs": [{"metadata": {"name": "kaito"}}],
    }
    with serving(answers, tmp_path) as kubeconfig:
        done = call("controller", "status", "-o", form, "--kubeconfig", str(kubeconfig))

    named = [f"deployment.apps/{CORE}", f"lease.coordination.k8s.io/{KAITO}"]
    if form != "name":
        items = yaml.safe_load(done.stdout)["items"]
        assert [qualified_name(item) for item in items] == named
    else:
        assert done.stdout.split() == named


@pytest.mark.parametrize(
    ("holder", "age", "state", "said"),
    [
        pytest.param("pod-1", 2, "good", "Lease held by pod-1", id="held"),
        pytest.param("pod-1", 600, "wrong", "held by pod-1, not renewed for 600 s", id="stale"),
        pytest.param("", 2, "wrong", "held by nobody", id="given up"),
    ],
)
def test_component_that_is_up_works_only_with_its_lease(
    holder: str, age: float, state: str, said: str
) -> None:
    deployment = {
        "metadata": {"name": "kubefoundry-core"},
        "spec": {"replicas": 2},
        "status": {"availableReplicas": 2},
    }

    [found] = components([deployment], [lease(holder, age)])

    assert (found.state, said in found.text) == (state, True), found
