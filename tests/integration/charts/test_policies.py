"""The values of the chart about policies (docs/policy.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.helm import CHART, OLDEST, Helm, by_key, values_file

pytestmark = pytest.mark.integration

SYSTEM = "kubefoundry-system"


def test_ceilings_are_those_of_the_values(helm: Helm, tmp_path: Path) -> None:
    ceilings = {"enabled": True, "limits": {"gpus": "8", "team-a.gpus": "16", "memory": None}}

    found = by_key(
        helm.rendered(CHART, *values_file(tmp_path / "v", {"ceilings": ceilings}), namespace=SYSTEM)
    )

    data = found["ConfigMap", SYSTEM, "kubefoundry-ceilings"]["data"]
    assert data == {"gpus": "8", "team-a.gpus": "16", "replicas": "32"}


def test_unknown_ceiling_is_refused(helm: Helm, tmp_path: Path) -> None:
    ceilings = {"enabled": True, "limits": {"team-a.gpu": "16"}}

    refused = helm(
        *("template", "kubefoundry", str(CHART), *OLDEST),
        *values_file(tmp_path / "v", {"ceilings": ceilings}),
        check=False,
    )

    assert "team-a.gpu" in refused.stderr


def test_creator_is_not_recorded_on_older_kubernetes(helm: Helm, tmp_path: Path) -> None:
    values = {"providerPolicy": {"enabled": True, "recordCreator": False}}

    found = by_key(helm.rendered(CHART, *values_file(tmp_path / "v", values), namespace=SYSTEM))

    assert ("ValidatingAdmissionPolicy", None, "kubefoundry-creator") in found
    assert ("MutatingAdmissionPolicy", None, "kubefoundry-creator") not in found
