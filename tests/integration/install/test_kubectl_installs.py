"""Manifests that kubectl applied are moved to another version by the command line, and back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.install.change import Kinds
from kubefoundry_local.control_plane import ROOT, ControlPlane, control_plane
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine
from support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.apart]

SYSTEM = "kubefoundry-system"
MANIFESTS = [
    ROOT / "manifests/install.yaml",
    *sorted((ROOT / "manifests/llamastack").glob("*.yaml")),
    *sorted((ROOT / "manifests/dashboard").glob("*.yaml")),
    *sorted((ROOT / "manifests/network-policies").glob("*.yaml")),
    *sorted(path for path in (ROOT / "examples").glob("*/manifest.yaml")),
]
FILES = [path for path in MANIFESTS if path.name != "kustomization.yaml"]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("plane"), ["--all-controllers"]) as made:
        made.kubectl("apply", "-f", str(ROOT / "manifests/install.yaml"))
        yield made


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(credentials.from_kubeconfig(str(plane.kubeconfig)), user_agent="test") as made:
        yield made


def objects_of(path: Path) -> list[Object]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


async def test_same_version_is_up_to_date_after_kubectl_apply(plane: ControlPlane) -> None:
    kubefoundry = CommandLine(plane.kubeconfig, "default")

    shown = await kubefoundry("controller upgrade", "--dry-run")
    provider = await kubefoundry("provider upgrade", "kaito", "--dry-run")

    assert shown.code == 0, shown.err
    assert "KubeFoundry (CRDs, core, selector) is up to date" in shown.err, shown.out
    assert (provider.code, "provider kaito is up to date" in provider.err) == (0, True), provider


async def test_upgrade_takes_over_fields_of_kubectl(plane: ControlPlane, client: Client) -> None:
    kubefoundry = CommandLine(plane.kubeconfig, "default")
    upgrade = ("controller upgrade", "--yes", "--registry", "registry.example.com/new")

    first = await kubefoundry(*upgrade)
    after = await client.get(DEPLOYMENTS, "kubefoundry-core", SYSTEM)
    # the controller has recorded the revision that an undo goes back from
    await until(
        client,
        DEPLOYMENTS,
        "kubefoundry-core",
        SYSTEM,
        lambda obj: obj is not None and revision(obj) == "2" and image(obj).startswith("registry"),
    )
    plane.kubectl("rollout", "undo", "deployment/kubefoundry-core", "-n", SYSTEM)
    back = await client.get(DEPLOYMENTS, "kubefoundry-core", SYSTEM)
    again = await kubefoundry(*upgrade)
    forward = await client.get(DEPLOYMENTS, "kubefoundry-core", SYSTEM)

    assert first.code == 0, first
    assert f"will change  Deployment {SYSTEM}/kubefoundry-core" in first.out
    assert f"changed      Deployment {SYSTEM}/kubefoundry-core" in first.out
    assert image(after).startswith("registry.example.com/new/")
    assert "kubectl-client-side-apply" not in {
        entry["manager"] for entry in after["metadata"]["managedFields"]
    }
    assert image(back).startswith("kubefoundry/")
    assert again.code == 0, again
    assert image(forward) == image(after)


async def test_edit_of_an_administrator_stays_a_conflict(plane: ControlPlane, client: Client) -> None:
    kubefoundry = CommandLine(plane.kubeconfig, "default")
    edit = [{"op": "replace", "path": "/spec/replicas", "value": 3}]
    await client.json_patch(DEPLOYMENTS, "kubefoundry-provider-kuberay", SYSTEM, edit, manager="kubectl-edit")

    done = await kubefoundry("provider upgrade", "kuberay", "--yes", "--registry", "registry.example.com/x")

    assert (done.code, '"kubectl-edit"' in done.err) == (3, True), done


async def test_remedy_for_a_server_side_apply_works(
    plane: ControlPlane, client: Client, tmp_path: Path
) -> None:
    kubefoundry = CommandLine(plane.kubeconfig, "default")
    name = "kubefoundry-provider-dynamo"
    manifest = tmp_path / "dynamo.yaml"
    text = (ROOT / "manifests/providers/dynamo.yaml").read_text()
    changed = text.replace("image: kubefoundry/", "image: registry.example.com/kf/")
    manifest.write_text(
        changed.replace("terminationGracePeriodSeconds: ", "terminationGracePeriodSeconds: 1")
    )
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(manifest))

    both = await kubefoundry("provider upgrade", "dynamo", "--yes")
    registry = await kubefoundry(
        "provider upgrade", "dynamo", "--yes", "--registry", "registry.example.com/kf"
    )
    shown = await kubefoundry("provider upgrade", "dynamo", "--force-conflicts", "--dry-run")
    forced = await kubefoundry("provider upgrade", "dynamo", "--force-conflicts", "--yes")
    again = await kubefoundry("provider upgrade", "dynamo", "--yes")
    after = await client.get(DEPLOYMENTS, name, SYSTEM)

    for refused in (both, registry):
        assert (refused.code, refused.out, len(refused.err.splitlines())) == (3, "", 2), refused
        assert f"Deployment {SYSTEM}/{name} has values of another field manager" in refused.err
        assert 'conflict with "kubectl"' in refused.err or 'conflicts with "kubectl"' in refused.err
    assert "keep the registry of an image with --registry" in both.err
    assert ".image" not in registry.err
    assert "--registry" not in registry.err
    assert (shown.code, forced.code, again.code) == (0, 0, 0), shown.err + forced.err + again.err
    assert "terminationGracePeriodSeconds" in shown.out
    assert "containers[provider-dynamo].image" in shown.out
    assert "up to date" in again.err
    assert image(after).startswith("kubefoundry/")


# The last ones: examples have components of the same names.
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
async def test_manifest_applies_over_client_side_apply(
    plane: ControlPlane, client: Client, path: Path
) -> None:
    if not any(one["kind"] == "Kustomization" for one in objects_of(path)):
        plane.kubectl("apply", "-f", str(path))
    kinds = Kinds(Session(client, "default"))

    for obj in objects_of(path):
        # raises ApiError for a conflict
        await client.apply(await kinds.of(obj), obj, manager="test", force=False, dry_run=True)


def image(obj: Object) -> str:
    return str(obj["spec"]["template"]["spec"]["containers"][0]["image"])


def revision(obj: Object) -> str | None:
    return (obj["metadata"].get("annotations") or {}).get("deployment.kubernetes.io/revision")
