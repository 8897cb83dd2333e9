"""Manifests of subjects, and refusals before a process is started."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubefoundry_conformance.cases import Cases, Unusable
from kubefoundry_conformance.cluster import manifest as manifests
from kubefoundry_conformance.cluster.running import running
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, Object

ROOT: Final = Path(__file__).resolve().parents[2]
WIDGETS: Final[list[Object]] = list(
    yaml.safe_load_all((ROOT / "examples/provider/manifest.yaml").read_text(encoding="utf-8"))
)


def deployment(manifest: list[Object]) -> Any:
    return manifests.deployment_of(manifest)["spec"]["template"]["spec"]


def without_account(manifest: list[Object]) -> None:
    del deployment(manifest)["serviceAccountName"]


def without_command(manifest: list[Object]) -> None:
    del deployment(manifest)["containers"][0]["command"]


def with_a_sidecar(manifest: list[Object]) -> None:
    deployment(manifest)["containers"].append({"name": "proxy"})


def with_a_program_of_no_package(manifest: list[Object]) -> None:
    deployment(manifest)["containers"][0]["command"] = ["kubefoundry-provider-nobody"]


def without_deployment(manifest: list[Object]) -> None:
    manifest.remove(manifests.deployment_of(manifest))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (without_account, "names no serviceAccountName"),
        (without_command, "with --command"),
        (with_a_sidecar, "2 containers"),
        (without_deployment, "0 Deployments"),
        (with_a_program_of_no_package, "install the provider's package"),
    ],
)
def test_manifest_without_startable_process_is_refused(
    change: Callable[[list[Object]], None], expected: str
) -> None:
    manifest = copy.deepcopy(WIDGETS)
    change(manifest)

    with pytest.raises(Unusable, match=expected):
        manifests.checked(manifest, [])


def test_missing_role_of_manifest_is_refused() -> None:
    manifest = [document for document in WIDGETS if document["kind"] != "ClusterRole"]

    with pytest.raises(
        Unusable, match="binds ClusterRole kubefoundry-provider-widgets, and does not hold it"
    ):
        manifests.cluster_rules(manifest)


def test_subject_in_running_cluster_writes_only_its_own() -> None:
    rules = manifests.cluster_rules(WIDGETS)
    own = manifests.writing(rules, "kubefoundry.ai", "inferenceproviderconfigs", "widgets")

    assert {verb for rule in manifests.reading(rules) for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert {tuple(rule["resourceNames"]) for rule in own} == {("widgets",)}
    assert {verb for rule in own for verb in rule["verbs"]} == {"patch"}


def test_wildcard_verb_is_reduced_to_reading() -> None:
    everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]

    assert manifests.reading(everything) == [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
    ]


def test_kubernetes_kind_is_refused_in_running_cluster(tmp_path: Path) -> None:
    cases = Cases(specs={"cpu": {}})

    with (
        pytest.raises(Unusable, match="would start pods"),
        running(tmp_path / "none", WIDGETS, None, DEPLOYMENTS, cases, [], tmp_path),
    ):
        pass


@pytest.mark.parametrize("program", ["nosuch", "/nosuch/program", "./nosuch", str(ROOT)])
def test_missing_program_is_refused_before_anything_starts(program: str) -> None:
    with pytest.raises(Unusable, match=f"there is no program {program} on PATH"):
        manifests.checked(copy.deepcopy(WIDGETS), [program, "--verbose"])
