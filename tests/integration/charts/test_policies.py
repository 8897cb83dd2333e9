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


@pytest.mark.parametrize(
    ("version", "is_recorded", "by_policy", "by_core"),
    [("1.36.0", True, True, False), ("1.35.4", True, False, True), ("1.36.0", False, False, False)],
)
def test_creator_is_recorded_by_policy_or_by_core(
    helm: Helm, tmp_path: Path, version: str, is_recorded: bool, by_policy: bool, by_core: bool
) -> None:
    values = {"providerPolicy": {"enabled": True, "recordCreator": is_recorded}}

    found = by_key(
        helm.rendered(
            CHART, *values_file(tmp_path / "v", values), "--kube-version", version, namespace=SYSTEM
        )
    )

    assert ("ValidatingAdmissionPolicy", None, "kubefoundry-creator") in found
    assert (("MutatingAdmissionPolicy", None, "kubefoundry-creator") in found) == by_policy
    core = found["Deployment", SYSTEM, "kubefoundry-core"]["spec"]["template"]["spec"]["containers"][0]
    assert ("--record-creator=true" in core["args"]) == by_core
