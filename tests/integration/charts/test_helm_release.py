"""Serving models across helm's install, upgrade, roll back, uninstall and a second install."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from kubefoundry_core.webhook_configurations import CONFIGURATION, MUTATING, VALIDATING
from kubefoundry_local.control_plane import ROOT, control_plane
from kubefoundry_local.ports import free_port
from kubefoundry_local.suite import Suite, account_files, process_of
from kubefoundry_sdk._api.kinds import CRDS, DEPLOYMENTS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.deployments import CPU, GPU, model_deployment
from support.helm import CHART, CRD_CHART, Helm, build, with_local_webhooks
from support.kinds import UPSTREAM
from support.model_writes import PROVIDERS, log_size, upstream_objects, upstream_writes
from support.namespaces import new_namespace
from support.played_pods import node
from support.previous_version import extract, import_path
from support.upstream import STANDINS
from support.waiting import phase, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.apart]

RELEASE: Final = "models"
"""Not the name of the chart: names of objects do not depend on it."""

SYSTEM: Final = "ml-platform"
MODELS: Final = int(os.environ.get("KUBEFOUNDRY_CHART_MODELS", "5"))
COMPONENTS: Final = ("core", "selector", *(f"provider-{name}" for name in PROVIDERS))
CRD_NAMES: Final = {"modeldeployments.kubefoundry.ai", "inferenceproviderconfigs.kubefoundry.ai"}


@dataclass(frozen=True)
class Version:
    """A version of KubeFoundry: its chart, the registry of its images, and how to run its code."""

    chart: Path
    registry: str
    environment: dict[str, str]


@dataclass
class Edits:
    """A stream of edits of one model. `refused`: the edits that the API server refused."""

    count: int = 0
    refused: list[str] = field(default_factory=list)


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Suite]:
    """A control plane with CRDs that kubectl applied, and simulated operators."""
    with control_plane(tmp_path / "plane", ["--all-controllers"]) as plane:
        for provider in UPSTREAM:
            plane.kubectl("apply", "--server-side", "-f", str(STANDINS / f"{provider}.yaml"))
        plane.wait_served(*(kind.crd for kind in UPSTREAM.values()))
        running = Suite(plane, tmp_path / "suite")
        running.simulate(*UPSTREAM)
        try:
            yield running
        finally:
            running.stop()


@pytest.fixture
async def api(suite: Suite) -> AsyncIterator[Client]:
    async with Client(credentials.from_kubeconfig(str(suite.plane.kubeconfig)), user_agent="test") as client:
        yield client


@pytest.fixture
async def namespace(api: Client) -> str:
    return await new_namespace(api)


@pytest.fixture
def helm(suite: Suite, tmp_path: Path) -> Helm:
    return Helm(build(), tmp_path, suite.plane.kubeconfig)


@pytest.fixture
def port() -> int:
    """Return the port of core's webhooks, the same for all versions."""
    return free_port()


@pytest.fixture
def current(tmp_path: Path, port: int) -> Version:
    folder = tmp_path / "current-chart"
    return Version(with_local_webhooks(CHART, folder, port), "registry.example.com/current", {})


@pytest.fixture
def previous(tmp_path: Path, port: int) -> Version:
    folder = extract(tmp_path / "previous")
    chart = folder / CHART.relative_to(ROOT)
    return Version(
        # An older version may have no chart yet.
        with_local_webhooks(chart if chart.is_dir() else CHART, tmp_path / "previous-chart", port),
        "registry.example.com/previous",
        {"PYTHONPATH": import_path(folder)},
    )


async def test_serving_models_outlive_every_helm_command(
    suite: Suite, api: Client, namespace: str, helm: Helm, port: int, previous: Version, current: Version
) -> None:
    helm("install", "crds", str(CRD_CHART), "--namespace", SYSTEM, "--create-namespace", "--take-ownership")
    await change(suite, api, helm, port, "install", previous)
    models = [f"m-{index}" for index in range(MODELS)]
    for name, provider in zip(models, itertools.cycle(PROVIDERS), strict=False):
        await create(api, namespace, name, provider)
    async with node(api, namespace):
        for name in models:
            await until_running(api, namespace, name)
        objects, start = await upstream_objects(api, namespace), log_size(suite)
        async with edits(api, namespace) as edited:
            await change(suite, api, helm, port, "upgrade", current)
            await until_every_model_had_its_turn(api, namespace, "upgraded")
            await change(suite, api, helm, port, "rollback", previous)
            await until_every_model_had_its_turn(api, namespace, "rolled-back")
            await change(suite, api, helm, port, "upgrade", current)
            await until_every_model_had_its_turn(api, namespace, "again")
            await uninstall(suite, api, helm)
            assert {crd["metadata"]["name"] for crd in (await api.list(CRDS))[0]} >= CRD_NAMES
            assert await phases(api, namespace, models) == dict.fromkeys(models, "Running")
            await asyncio.to_thread(helm, "install", "crds", str(CRD_CHART), "--namespace", SYSTEM)
            await change(suite, api, helm, port, "install", current)
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
    arguments = {
        "install": [RELEASE, str(version.chart), "--set", f"image.registry={version.registry}"],
        "upgrade": [RELEASE, str(version.chart), "--set", f"image.registry={version.registry}"],
        "rollback": [RELEASE, "1"],
    }
    # In threads, so that the edits go on.
    await asyncio.to_thread(helm, command, *arguments[command], "--namespace", SYSTEM)
    assert command == "install" or await bundles(api) == before
    deployments = {name: await api.get(DEPLOYMENTS, f"kubefoundry-{name}", SYSTEM) for name in COMPONENTS}
    await asyncio.to_thread(run_deployed, suite, deployments, port, version)


def run_deployed(suite: Suite, deployments: dict[str, Object], port: int, version: Version) -> None:
    """Start the processes as their Deployments describe them: they have to be those of this version."""
    for component in suite.components.values():
        if component.running:
            component.stop()
    for name, deployment in deployments.items():
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert container["image"].startswith(f"{version.registry}/{name}:")
        folder = suite.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        token = suite.plane.token(SYSTEM, f"kubefoundry-{name}")
        files = account_files(folder, SYSTEM, token, suite.plane.authority(), suite.plane.server)
        webhooks = {"KUBEFOUNDRY_WEBHOOK_PORT": str(port), "KUBEFOUNDRY_WEBHOOK_HOST": "127.0.0.1"}
        variables = {**files, **(webhooks if name == "core" else {}), **version.environment}
        suite.components[name] = process_of(name, deployment, folder, variables)
        suite.components[name].start()
    for name in COMPONENTS:
        suite.components[name].wait_ready()


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
    await create(api, namespace, "edited", "dynamo")

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


async def create(api: Client, namespace: str, name: str, provider: str) -> None:
    spec = CPU if provider == "direct" else GPU
    body = model_deployment(name, namespace, spec, provider=provider)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")


async def until_running(api: Client, namespace: str, name: str) -> None:
    await until_deployment(api, name, namespace, lambda obj: phase(obj) == "Running", seconds=300)


async def until_every_model_had_its_turn(api: Client, namespace: str, prefix: str) -> None:
    """Create a model of each provider, and wait until they run. Turns are taken in order."""
    for provider in PROVIDERS:
        await create(api, namespace, f"{prefix}-{provider}", provider)
    for provider in PROVIDERS:
        await until_running(api, namespace, f"{prefix}-{provider}")


async def phases(api: Client, namespace: str, models: list[str]) -> dict[str, str | None]:
    deployments, _ = await api.list(MODEL_DEPLOYMENTS, namespace)
    named = {obj["metadata"]["name"]: phase(obj) for obj in deployments}
    return {name: named.get(name) for name in models}
