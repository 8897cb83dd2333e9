"""What another release of an upstream's CRD means for models that run, before it is installed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from kubefoundry_cli import adoption, upgrade
from kubefoundry_cli.model import valid
from kubefoundry_cli.providers import installed, probed
from kubefoundry_sdk._provider.contract import Provider
from support.deployments import GPU
from support.upstream import PROVIDERS, oldest_first, requires_shared, standin


def served(provider: Provider, crd: dict[str, Any]) -> upgrade.Model:
    blank = {"metadata": {"name": "m", "namespace": "models"}, "kind": provider.upstream.kind}
    obj = valid(adoption.model(blank, {**GPU, "provider": {"name": provider.name}}))
    return upgrade.made(provider, obj, probed(provider, crd))


def without(crd: dict[str, Any], *path: str) -> dict[str, Any]:
    """The CRD whose served versions lack that field."""
    made = copy.deepcopy(crd)
    for version in made["spec"]["versions"]:
        place = version["schema"]["openAPIV3Schema"]
        for step in path[:-1]:
            place = place["items"] if step == "[]" else place["properties"][step]
        del place["properties"][path[-1]]
    return made


@pytest.mark.parametrize("name", PROVIDERS)
def test_same_crd_changes_nothing(name: str) -> None:
    provider, crd = installed()[name], standin(name).document

    found = upgrade.outcome(provider, upgrade.release(provider, crd), served(provider, crd))

    assert (found.fate, found.lost) == ("untouched", ())


def test_used_field_that_is_gone_is_named() -> None:
    provider, crd = installed()["kuberay"], standin("kuberay").document
    new = upgrade.release(
        provider, without(crd, "spec", "rayClusterConfig", "workerGroupSpecs", "[]", "maxReplicas")
    )

    found = upgrade.outcome(provider, new, served(provider, crd))

    assert found.lost == ("spec.rayClusterConfig.workerGroupSpecs[].maxReplicas",)


def test_version_that_is_no_longer_served_is_named() -> None:
    provider, crd = installed()["kaito"], standin("kaito").document
    other = copy.deepcopy(crd)
    for version in other["spec"]["versions"]:
        version["name"] = "v2"

    found = upgrade.outcome(provider, upgrade.release(provider, other), served(provider, crd))

    assert found.lost == ("apiVersion kaito.sh/v1beta1 (no longer served)",)


def test_crd_without_a_needed_field_freezes_models() -> None:
    provider, crd = installed()["kuberay"], standin("kuberay").document
    new = upgrade.release(provider, without(crd, "spec", "serveConfigV2"))

    found = upgrade.outcome(provider, new, served(provider, crd))

    assert (new.schema, found.fate, "serveConfigV2" in found.why) == (None, "frozen", True)


@requires_shared
@pytest.mark.upstream
@pytest.mark.parametrize("name", PROVIDERS)
def test_no_upgrade_of_an_upstream_restarts_a_model(name: str) -> None:
    """From each release to each later one: what the contract says of upgrades (contract §4)."""
    provider, releases = installed()[name], oldest_first(name)
    for number, old in enumerate(releases):
        try:
            model = served(provider, old.document)
        except Exception:
            continue
        for later in releases[number:]:
            found = upgrade.outcome(provider, upgrade.release(provider, later.document), model)
            assert found.fate in ("untouched", "refused"), (old.name, later.name, found)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["kuberay"], "give the CRD of the release to come", id="no CRD"),
        pytest.param(["--release", "v1"], "--release needs PROVIDER", id="a release of what"),
        pytest.param(["direct", "--crd", "CRD"], "needs no CRD", id="a kind of Kubernetes"),
        pytest.param(["kaito", "--crd", "CRD"], "wanted: workspaces.kaito.sh", id="another's CRD"),
        pytest.param(["kuberay", "--crd", "/nonexistent"], "cannot read /nonexistent", id="no file"),
        pytest.param(["kuberay", "--release", "v9"], "KUBEFOUNDRY_UPSTREAM_CRDS", id="no folder"),
    ],
)
def test_compat_refuses_an_invalid_comparison(
    call: Callable[..., Result], tmp_path: Path, arguments: list[str], said: str
) -> None:
    crd = tmp_path / "crd.yaml"
    crd.write_text(yaml.safe_dump(standin("kuberay").document))

    done = call("compat", *(str(crd) if one == "CRD" else one for one in arguments))

    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
