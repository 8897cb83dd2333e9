"""A suite in which the selector checks permissions, with the policies about providers, and users with permissions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import Suite
from support.suites import running_suite


@pytest.fixture(scope="package")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    with running_suite(tmp_path_factory.mktemp("policy")) as made:
        made.install("selector", environment={"KUBEFOUNDRY_CHECK_PROVIDER_USE": "true"})
        made.plane.kubectl("apply", "-k", str(ROOT / "manifests" / "provider-policy"))
        made.start("core", "selector")
        yield made
