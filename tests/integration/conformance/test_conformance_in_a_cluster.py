"""The kit in a shared cluster: it uses a namespace of its own and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Final

import pytest

from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, NAMESPACES, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._api.managed_fields import managers
from kubefoundry_sdk._cluster.client import Client
from support.deployments import model_deployment
from support.kinds import UPSTREAM
from support.kubernetes_version import at_least
from support.status_owners import RELEASE, is_released_by_core
from support.waiting import phase, until, until_deployment
from support.widgets import SPEC

pytestmark = [pytest.mark.integration, pytest.mark.apart, pytest.mark.thorough]

ROOT: Final = Path(__file__).resolve().parents[3]
WIDGETS: Final = {
    "--manifest": "examples/provider/manifest.yaml",
    "--crd": "examples/provider/widgets.crd.yaml",
    "--cases": "examples/provider/cases.yaml",
}
EVERYWHERE: Final = (
    "namespaces,customresourcedefinitions,clusterroles,clusterrolebindings,inferenceproviderconfigs,"
    "validatingwebhookconfigurations,modeldeployments"
)
POLICIES: Final = "validatingadmissionpolicies,validatingadmissionpolicybindings"
"""Served from Kubernetes 1.30 on. Where they are not, the kit skips the checks that create some."""

NEEDS_THE_LOG: Final = {"WRI-3", "STA-2", "PRO-3", "PRO-4", "PRO-5"}


async def kit(plane: ControlPlane, *more: str, **options: str) -> asyncio.subprocess.Process:
    """The program, as a vendor runs it."""
    given = {**WIDGETS, **{f"--{name}": value for name, value in options.items()}}
    arguments = [*(part for pair in given.items() for part in pair), *more]
    return await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("kubefoundry-conformance")),
        "provider",
        "--kubeconfig",
        str(plane.kubeconfig),
        "--patience",
        "6",
        *arguments,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def things(plane: ControlPlane, besides: str = "") -> set[str]:
    """What is in the cluster as a whole, and all ModelDeployments, but for those of that namespace."""
    kinds = f"{EVERYWHERE},{POLICIES}" if at_least("1.30") else EVERYWHERE
    received = plane.kubectl("get", kinds, "-A", "-o", "json").stdout
    return {
        f"{one['kind']} {one['metadata'].get('namespace', '')}/{one['metadata']['name']}"
        for one in json.loads(received)["items"]
        if not besides or besides not in (one["metadata"]["name"], one["metadata"].get("namespace"))
    }


async def registered(api: Client) -> None:
    """Once the subject has reported."""
    await until(
        api, PROVIDER_CONFIGS, "widgets", None, lambda obj: ((obj or {}).get("status") or {}).get("ready")
    )


async def test_kit_leaves_nothing_and_touches_no_other_model(
    suite: Suite, api: Client, tmp_path: Path
) -> None:
    # The subject's own rule asks for every namespace of such a name.
    theirs = f"edge-{tmp_path.name.replace('_', '-')[-30:]}"
    before = things(suite.plane)
    program = await kit(suite.plane, json=str(tmp_path / "report.json"))
    await registered(api)
    await api.create(NAMESPACES, {"metadata": {"name": theirs}}, manager="test")
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", theirs, SPEC, provider=None), manager="test")
    serving = await until_deployment(
        api, "m", theirs, lambda obj: phase(obj) == "Running" and is_released_by_core(obj), seconds=RELEASE
    )
    chosen = serving["status"]["provider"]["name"]
    upstream = await api.get(UPSTREAM[chosen], "m", theirs)

    out, err = await program.communicate()

    assert program.returncode == 0, f"{out.decode()}\n{err.decode()}"
    results = json.loads((tmp_path / "report.json").read_text())["results"]
    not_run = {one["id"]: one["seen"] for one in results if one["outcome"] == "skipped"}
    assert set(not_run) >= NEEDS_THE_LOG
    assert all(why.startswith("not run, because ") for why in not_run.values())
    assert sum(one["outcome"] == "passed" for one in results) >= 18
    assert things(suite.plane, besides=theirs) == before
    after = await api.get(MODEL_DEPLOYMENTS, "m", theirs)
    assert after["metadata"]["resourceVersion"] == serving["metadata"]["resourceVersion"]
    assert not any("widgets" in name or "conformance" in name for name in managers(after))
    now = await api.get(UPSTREAM[chosen], "m", theirs)
    assert identity(now) == identity(upstream)


def identity(obj: Object) -> tuple[str, int]:
    return obj["metadata"]["uid"], obj["metadata"]["generation"]


async def test_kit_leaves_nothing_when_terminated(suite: Suite, api: Client) -> None:
    before = things(suite.plane)
    program = await kit(suite.plane)
    await registered(api)

    program.terminate()
    _, err = await program.communicate()

    assert program.returncode == 130, err.decode()
    assert things(suite.plane) == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {
                "manifest": "manifests/providers/kuberay.yaml",
                "crd": "dev/simulators/crds/kuberay.yaml",
                "cases": "providers/kuberay/cases.yaml",
            },
            "InferenceProviderConfig kuberay is there already",
        ),
        ({"crd": "dev/simulators/crds/kuberay.yaml"}, "CRD rayservices.ray.io is there already"),
    ],
)
async def test_kit_refuses_a_cluster_with_its_objects(
    suite: Suite, api: Client, options: dict[str, str], said: str
) -> None:
    before = things(suite.plane)

    program = await kit(suite.plane, **options)
    _, err = await program.communicate()

    assert (program.returncode, err.decode().count("\n")) == (2, 1)
    assert said in err.decode()
    assert things(suite.plane) == before


async def test_without_core_nothing_is_checked(cluster: ControlPlane) -> None:
    before = things(cluster)

    program = await kit(cluster)
    _, err = await program.communicate()

    assert program.returncode == 2
    assert "core does not run in" in err.decode().splitlines()[-1]
    assert things(cluster) == before
