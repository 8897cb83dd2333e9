"""Each command in a message about the installation runs as printed and removes the problem."""

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC, datetime
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, Final

import pytest

from kubefoundry_cli.cluster import MANAGER
from kubefoundry_cli.install import bundle
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.conditions import rfc3339
from kubefoundry_sdk._api.kinds import (
    CRDS,
    DEPLOYMENTS,
    LEASES,
    MODEL_DEPLOYMENTS,
    PROVIDER_CONFIGS,
    Kind,
    Object,
)
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.reader import Reader
from support.registrations import register
from support.waiting import reason, until, until_deployment

NEWEST: Final = f"kaito-provider:v{version_of('kubefoundry-provider-kaito')}"
pytestmark = pytest.mark.integration

SYSTEM: Final = names.SYSTEM_NAMESPACE
MUTATING, VALIDATING = (
    Kind("admissionregistration.k8s.io", "v1", f"{kind.lower()}s", kind, namespaced=False)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
)


@pytest.fixture
async def reader(fresh: Suite, api: Client, namespace: str, tmp_path: Path) -> Reader:
    return Reader(fresh.plane, api, namespace, tmp_path, fresh.plane.kubeconfig)


async def followed(reader: Reader, message: str, key: str, **fill: str) -> str:
    """Return all that the command prints, which has to succeed."""
    done = await reader.follow(message, key, fill)
    assert done.code == 0, (message, done)
    return done.out + done.err


async def delete(api: Client, kind: Kind, name: str, namespace: str | None = None) -> None:
    live = await api.get(kind, name, namespace)
    await api.delete(kind, name, namespace, uid=live["metadata"]["uid"])


async def test_missing_installation_is_installed(reader: Reader) -> None:
    for kind in (MODEL_DEPLOYMENTS, PROVIDER_CONFIGS):
        await delete(reader.api, CRDS, kind.crd)
        await until(reader.api, CRDS, kind.crd, None, lambda obj: obj is None)
    messages = {
        "cli/failure: kubefoundry controller install": await reader.says("status"),
        "cli/commands/start: kubefoundry controller install": await reader.says("start"),
        "cli/commands/controller: kubefoundry controller install": await reader.says("controller status"),
        "cli/checks/examination: kubefoundry controller install": await reader.says("doctor"),
    }

    for key, message in messages.items():
        await followed(reader, message, key)

    assert "No models in namespace" in await reader.says("status")
    assert "kubefoundry-core" in await reader.says("controller status")
    assert "no Deployment in namespace" not in await reader.says("doctor")


async def test_broken_installation_is_explained_and_repaired(reader: Reader) -> None:
    api = reader.api
    await reader.says("controller install", "--yes")

    message = await reader.says("doctor")
    shown = await followed(reader, message, "cli/checks/examination: kubectl describe deployment {}")
    assert "kubefoundry-core" in shown
    # no pod runs here: kubectl has found the Deployment, and looked for its pods
    logs = await reader.follow(message, "cli/checks/webhooks: kubectl logs deployment/{}")
    assert "not found" not in logs.err
    await available(api, "kubefoundry-core")
    message = await reader.says("doctor")
    logs = await reader.follow(message, "cli/checks/examination: kubectl logs deployment/{}")
    assert "not found" not in logs.err

    await delete(api, MUTATING, "kubefoundry-core")
    message = await reader.says("doctor")
    assert "MutatingWebhookConfiguration kubefoundry-core is missing" in message
    await followed(reader, message, "cli/checks/webhooks: kubefoundry controller install")
    assert "kubefoundry-core is missing" not in await reader.says("doctor")

    await older(api, "kubefoundry-core")
    message = await reader.says("doctor")
    await followed(reader, message, "cli/checks/versions: kubefoundry controller upgrade")
    assert "0.0.77" not in await reader.says("doctor")

    body = model_deployment("m", reader.namespace, GPU)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    message = await reader.says("status", "m")
    done = await reader.follow(message, "cli/health: kubefoundry controller status")
    assert (done.code, "kubefoundry-core       " in done.out) == (1, True), done


async def older(api: Client, name: str) -> None:
    """Apply a Deployment as the command line of an earlier release did."""
    [body] = [
        one
        for one in bundle.controller()
        if one["metadata"]["name"] == name and "template" in one.get("spec", {})
    ]
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "example.com/core:0.0.77"
    await api.apply(DEPLOYMENTS, body, manager=MANAGER)


async def available(api: Client, name: str) -> None:
    """Report a Deployment available whose process holds no Lease."""
    live = await api.get(DEPLOYMENTS, name, SYSTEM)
    wanted = live["spec"]["replicas"]
    status = {"replicas": wanted, "readyReplicas": wanted, "availableReplicas": wanted}
    change: list[dict[str, Any]] = [{"op": "add", "path": "/status", "value": status}]
    await api.json_patch(DEPLOYMENTS, f"{name}/status", SYSTEM, change, manager="controller")
    lease = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": name, "namespace": SYSTEM},
        "spec": {"holderIdentity": ""},
    }
    await api.apply(LEASES, lease, manager="test")


async def test_missing_and_old_provider_is_installed(reader: Reader) -> None:
    await reader.says("controller install", "--yes")

    for command, key in (
        ("doctor", "cli/checks/examination: kubefoundry provider install NAME"),
        ("provider list", "cli/commands/provider: kubefoundry provider install NAME"),
    ):
        await followed(reader, await reader.says(command), key, NAME="kaito")
    late = await reader.says("provider install", "kaito", "--yes", "--wait", "0.2")
    shown = await followed(reader, late, "cli/install/change: kubectl describe {} {}")
    assert "kubefoundry-provider-kaito" in shown
    deployment = await reader.api.get(DEPLOYMENTS, "kubefoundry-provider-kaito", SYSTEM)
    assert deployment["spec"]["template"]

    await registered(reader.api, "2026-02-04T10:00:00Z")
    silent = await reader.says("doctor")
    shown = await followed(
        reader, silent, "cli/checks/examination: kubectl describe deployment kubefoundry-provider-{}"
    )
    assert "kubefoundry-provider-kaito" in shown

    await registered(reader.api, rfc3339(datetime.now(UTC)), version="kaito-provider:v0.0.1")
    message = await reader.says("doctor")
    assert "provider kaito" in message
    await followed(reader, message, "cli/checks/versions: kubefoundry provider upgrade {}")


async def test_stopped_provider_outside_the_cluster_is_installed(reader: Reader) -> None:
    await reader.says("controller install", "--yes")
    await registered(reader.api, rfc3339(datetime.now(UTC)))
    await stopped(reader.api, "kubefoundry-provider-kaito")

    message = await reader.says("doctor")
    await followed(reader, message, "cli/checks/examination: kubefoundry provider install {}")

    assert "no Deployment in this cluster" not in await reader.says("doctor")


async def stopped(api: Client, name: str) -> None:
    """Leave the Lease of a process that stopped without releasing it."""
    lease = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": name, "namespace": SYSTEM},
        "spec": {"holderIdentity": "elsewhere", "renewTime": "2026-02-04T10:00:00.000000Z"},
    }
    await api.apply(LEASES, lease, manager="test")


async def registered(api: Client, heartbeat: str, version: str = NEWEST) -> None:
    """Register provider kaito as its process did at that time."""
    await register(api, "kaito")
    head = {
        "apiVersion": PROVIDER_CONFIGS.api_version,
        "kind": PROVIDER_CONFIGS.kind,
        "metadata": {"name": "kaito"},
    }
    status = {"ready": True, "lastHeartbeat": heartbeat, "version": version}
    await api.apply_status(PROVIDER_CONFIGS, {**head, "status": status}, manager="kaito-provider")


async def held_model(api: Client, namespace: str) -> None:
    """Make a model that provider kaito holds."""
    body = model_deployment("m", namespace, GPU, provider="kaito")
    body["metadata"]["finalizers"] = [names.provider_finalizer("kaito")]
    await api.apply(MODEL_DEPLOYMENTS, body, manager=names.provider_manager("kaito"))
    status: Object = {"provider": {"name": "kaito"}}
    head = {key: body[key] for key in ("apiVersion", "kind")}
    meta = {"name": "m", "namespace": namespace}
    await api.apply_status(
        MODEL_DEPLOYMENTS, {**head, "metadata": meta, "status": status}, manager="kubefoundry-core"
    )


async def test_command_shows_provider_that_does_not_clean_up(reader: Reader) -> None:
    uninstall = ("provider uninstall", "kaito", "--delete-models", "--yes", "--timeout", "0.2")
    await reader.says("provider install", "kaito", "--yes")
    await registered(reader.api, "2026-02-04T10:00:00Z")
    await held_model(reader.api, reader.namespace)

    silent = await reader.says(*uninstall)
    shown = await followed(reader, silent, "cli/install/run: kubectl get deployment kubefoundry-provider-{}")
    assert "kubefoundry-provider-kaito" in shown

    await registered(reader.api, rfc3339(datetime.now(UTC)))
    late = await reader.says(*uninstall)
    shown = await followed(reader, late, "cli/install/change: kubectl get deployment kubefoundry-provider-{}")
    assert "kubefoundry-provider-kaito" in shown


async def lease_of_kaito(api: Client, renewed: str) -> None:
    """Write the Lease of provider kaito as its process does."""
    body: Object = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": "kubefoundry-provider-kaito", "namespace": names.SYSTEM_NAMESPACE},
        "spec": {"holderIdentity": "process", "leaseDurationSeconds": 15, "renewTime": renewed},
    }
    await api.apply(LEASES, body, manager="test")


async def test_killed_provider_is_noticed_before_the_deletion(reader: Reader) -> None:
    """It has reported a moment ago. Only its Lease shows that it does not run."""
    api, namespace = reader.api, reader.namespace
    uninstall = ("provider uninstall", "kaito", "--delete-models", "--yes", "--timeout", "0.2")
    await reader.says("provider install", "kaito", "--yes")
    await registered(api, rfc3339(datetime.now(UTC)))
    await held_model(api, namespace)
    await lease_of_kaito(api, "2026-02-04T10:00:00.000000Z")

    killed = await reader.says(*uninstall)

    assert "provider kaito does not run: nobody renews its Lease" in killed
    kept = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert "deletionTimestamp" not in kept["metadata"]

    async def renew() -> None:
        for second in itertools.count():
            await lease_of_kaito(api, f"2026-02-04T10:{second // 60 % 60:02}:{second % 60:02}.000000Z")

    renewing = asyncio.create_task(renew())
    running = await reader.says(*uninstall)
    renewing.cancel()

    assert "nobody renews its Lease" not in running
    deleted = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert "deletionTimestamp" in deleted["metadata"]


async def test_model_without_provider_gets_one(fresh: Suite, reader: Reader) -> None:
    api, namespace = reader.api, reader.namespace
    fresh.start("core")
    for name, provider in (("m", None), ("named", "kaito")):
        body = model_deployment(name, namespace, GPU, provider=provider)
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_selected(api, namespace, "m", "NoSelector")
    await until_selected(api, namespace, "named", "ProviderNotRegistered")

    # there is no kubelet: the test starts the processes that were installed, and webhooks do not reach them
    for kind in (MUTATING, VALIDATING):
        await delete(api, kind, "kubefoundry-core")
    message = await reader.says("status", "m")
    await followed(reader, message, "cli/advice: kubefoundry controller install")
    fresh.start("selector")
    await until_selected(api, namespace, "m", "NoHealthyProviders")

    message = await reader.says("status", "m")
    shown = await followed(reader, message, "cli/advice: kubefoundry provider list")
    assert "not registered: direct, dynamo, kaito, kuberay" in shown

    message = await reader.says("status", "named")
    await followed(reader, message, "cli/advice: kubefoundry provider install {}")
    fresh.start("kaito")
    await until_deployment(
        api, "named", namespace, lambda obj: reason(obj, "ProviderSelected") == "ExplicitlySelected"
    )


async def until_selected(api: Client, namespace: str, name: str, why: str) -> None:
    await until_deployment(api, name, namespace, lambda obj: reason(obj, "ProviderSelected") == why)
