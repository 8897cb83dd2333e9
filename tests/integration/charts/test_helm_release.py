"""Serving models across helm's install, upgrade, roll back, uninstall and a second install."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import pytest

from kubefoundry_core.webhook_configurations import CONFIGURATION, MUTATING, VALIDATING
from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.ports import free_port
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CRDS, DEPLOYMENTS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.deployed_processes import COMPONENTS, run_processes
from support.helm import CHART, CRD_CHART, Helm, build, with_local_webhooks
from support.model_writes import log_size, upstream_objects, upstream_writes
from support.played_pods import node
from support.serving_models import (
    create_model,
    create_models,
    phases,
    until_every_model_had_its_turn,
    until_running,
)
from support.suites import upstream_suite
from support.versions import CURRENT, Version, previous_version

pytestmark = [pytest.mark.integration, pytest.mark.apart]

RELEASE: Final = "models"
"""Not the name of the chart: names of objects do not depend on it."""

SYSTEM: Final = "ml-platform"
MODELS: Final = int(os.environ.get("KUBEFOUNDRY_CHART_MODELS", "5"))
CRD_NAMES: Final = {"modeldeployments.kubefoundry.ai", "inferenceproviderconfigs.kubefoundry.ai"}


@dataclass
class Edits:
    """A stream of edits of one model. `refused`: the edits that the API server refused."""

    count: int = 0
    refused: list[str] = field(default_factory=list)


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Suite]:
    """Our CRDs as kubectl applies them, upstream CRDs and simulated operators."""
    with upstream_suite(tmp_path) as running:
        yield running


@pytest.fixture
def helm(suite: Suite, tmp_path: Path) -> Helm:
    return Helm(build(), tmp_path, suite.plane.kubeconfig)


@pytest.fixture
def port() -> int:
    """Return the port of core's webhooks, the same for all versions."""
    return free_port()


@pytest.fixture
def previous(tmp_path: Path) -> Version:
    return previous_version(tmp_path / "previous")


async def test_serving_models_outlive_every_helm_command(
    suite: Suite, api: Client, namespace: str, helm: Helm, port: int, previous: Version
) -> None:
    helm("install", "crds", str(CRD_CHART), "--namespace", SYSTEM, "--create-namespace", "--take-ownership")
    await change(suite, api, helm, port, "install", previous)
    models = await create_models(api, namespace, MODELS)
    async with node(api, namespace):
        await until_running(api, namespace, models)
        objects, start = await upstream_objects(api, namespace), log_size(suite)
        async with edits(api, namespace) as edited:
            await change(suite, api, helm, port, "upgrade", CURRENT)
            await until_every_model_had_its_turn(api, namespace, "upgraded")
            await change(suite, api, helm, port, "rollback", previous)
            await until_every_model_had_its_turn(api, namespace, "rolled-back")
            await change(suite, api, helm, port, "upgrade", CURRENT)
            await until_every_model_had_its_turn(api, namespace, "again")
            await uninstall(suite, api, helm)
            assert {crd["metadata"]["name"] for crd in (await api.list(CRDS))[0]} >= CRD_NAMES
            assert await phases(api, namespace, models) == dict.fromkeys(models, "Running")
            await asyncio.to_thread(helm, "install", "crds", str(CRD_CHART), "--namespace", SYSTEM)
            await change(suite, api, helm, port, "install", CURRENT)
            await until_every_model_had_its_turn(api, namespace, "returned")
            assert await asyncio.to_thread(crd_deletion_is_refused, helm)

        print(f"{MODELS} models, {edited.count} edits, {len(edited.refused)} refused")
        assert edited.refused == []
        assert edited.count > MODELS
        assert upstream_writes(suite, namespace, start, models) == []
        assert objects.items() <= (await upstream_objects(api, namespace)).items()
        assert await phases(api, namespace, models) == dict.fromkeys(models, "Running")


async def change(suite: Suite, api: Client, helm: Helm, port: int, command: str, version: Version) -> None:
    """Run a helm command, then the processes of the Deployments that it leaves. It has to leave the caBundle."""
    before = await bundles(api)
    if command == "rollback":
        arguments = ["1"]
    else:
        chart = chart_of(version, Path(mkdtemp(dir=helm.folder)), port)
        arguments = [str(chart), "--set", f"image.registry={version.registry}"]
    # In threads, so that the edits go on.
    await asyncio.to_thread(helm, command, RELEASE, *arguments, "--namespace", SYSTEM)
    assert command == "install" or await bundles(api) == before
    deployments = {name: await api.get(DEPLOYMENTS, f"kubefoundry-{name}", SYSTEM) for name in COMPONENTS}
    await asyncio.to_thread(run_deployed, suite, deployments, port, version)


def chart_of(version: Version, folder: Path, port: int) -> Path:
    """Return a copy of the version's chart with local webhooks."""
    chart = version.folder / CHART.relative_to(ROOT)
    # An older version may have no chart yet.
    return with_local_webhooks(chart if chart.is_dir() else CHART, folder, port)


def run_deployed(suite: Suite, deployments: dict[str, Object], port: int, version: Version) -> None:
    """Start the processes as their Deployments describe them: they have to be those of this version."""
    for name, deployment in deployments.items():
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert container["image"].startswith(f"{version.registry}/{name}:")
    run_processes(suite, deployments, SYSTEM, port, version.environment)


async def uninstall(suite: Suite, api: Client, helm: Helm) -> None:
    """Uninstall both releases, and end the processes as the kubelet would."""
    for release in (RELEASE, "crds"):
        await asyncio.to_thread(helm, "uninstall", release, "--namespace", SYSTEM)
    for component in suite.components.values():
        await asyncio.to_thread(component.stop)
    assert (await api.list(DEPLOYMENTS, SYSTEM))[0] == []


def crd_deletion_is_refused(helm: Helm) -> bool:
    """Uninstall the CRDs without keep, and return whether the API server refused that, as core demands."""
    helm("upgrade", "crds", str(CRD_CHART), "--namespace", SYSTEM, "--set", "keep=false")
    done = helm("uninstall", "crds", "--namespace", SYSTEM, "--debug", check=False)
    return done.returncode == 1 and "delete or eject every ModelDeployment" in done.stdout + done.stderr


async def bundles(api: Client) -> list[str]:
    """Return the caBundle of each webhook of core."""
    named = {"fieldSelector": f"metadata.name={CONFIGURATION}"}
    configurations = [
        obj for kind in (MUTATING, VALIDATING) for obj in (await api.list(kind, selector=named))[0]
    ]
    return [
        webhook["clientConfig"].get("caBundle") or "" for obj in configurations for webhook in obj["webhooks"]
    ]


@asynccontextmanager
async def edits(api: Client, namespace: str) -> AsyncIterator[Edits]:
    """Edit a model until the block ends, again and again, and yield the outcome of the edits."""
    edited = Edits()
    await create_model(api, namespace, "edited", "dynamo")

    async def edit_forever() -> None:
        for number in itertools.count():
            edit = [{"op": "add", "path": "/spec/scaling", "value": {"replicas": 1 + number % 2}}]
            edited.count += 1
            try:
                await api.json_patch(MODEL_DEPLOYMENTS, "edited", namespace, edit, manager="test")
            except ApiError as error:
                edited.refused.append(str(error))
            await asyncio.sleep(0.1)

    task = asyncio.create_task(edit_forever())
    try:
        yield edited
    finally:
        task.cancel()
        [outcome] = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(outcome, asyncio.CancelledError), outcome
