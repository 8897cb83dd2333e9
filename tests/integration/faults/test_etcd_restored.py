"""etcd is restored to an earlier state under running processes, which know versions that no longer exist."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_local.suite import Suite, end
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.kinds import GRAPHS, RAY_SERVICES
from support.suites import running_suite
from support.waiting import phase, until, until_deployment

pytestmark = pytest.mark.integration

COMPONENTS = ("core", "selector", "dynamo", "kuberay")


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Suite]:
    with running_suite(tmp_path, "dynamo", "kuberay") as made:
        made.start(*COMPONENTS)
        yield made


async def created(api: Client, namespace: str, name: str, provider: str | None) -> Object:
    body = model_deployment(name, namespace, GPU, provider=provider)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    return await served(api, namespace, name, 1)


async def served(api: Client, namespace: str, name: str, replicas: int) -> Object:
    return await until_deployment(
        api,
        name,
        namespace,
        lambda obj: (
            phase(obj) == "Running"
            and obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
            and obj["status"]["replicas"]["ready"] == replicas
        ),
    )


async def scale(api: Client, namespace: str, name: str, replicas: int) -> None:
    change: list[dict[str, Any]] = [{"op": "add", "path": "/spec/scaling/replicas", "value": replicas}]
    await api.json_patch(MODEL_DEPLOYMENTS, name, namespace, change, manager="test")


async def scaled(api: Client, namespace: str, name: str, replicas: int) -> Object:
    await scale(api, namespace, name, replicas)
    return await served(api, namespace, name, replicas)


async def write_until(api: Client, namespace: str, version: int) -> None:
    """Writes until the API server's history has gone beyond that version."""
    meta = {"name": "history", "namespace": namespace}
    body: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    for number in count():
        body["data"] = {"number": str(number)}
        stored = await api.apply(CONFIG_MAPS, body, manager="test")
        if int(stored["metadata"]["resourceVersion"]) > version:
            return


async def test_components_continue_from_a_restored_etcd(
    fresh: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    await created(api, namespace, "scaled", "dynamo")
    deleted = await created(api, namespace, "deleted", "kuberay")
    moved = await created(api, namespace, "moved", None)
    processes = {name: fresh.components[name].process for name in COMPONENTS}

    await asyncio.to_thread(fresh.plane.back_up_etcd, tmp_path / "backup")
    await scaled(api, namespace, "scaled", 3)
    await api.delete(MODEL_DEPLOYMENTS, "deleted", namespace, uid=deleted["metadata"]["uid"])
    await until(api, RAY_SERVICES, "deleted", namespace, lambda obj: obj is None)
    change = [{"op": "add", "path": "/spec/provider", "value": {"name": "kuberay"}}]
    await api.json_patch(MODEL_DEPLOYMENTS, "moved", namespace, change, manager="test")
    await until(api, RAY_SERVICES, "moved", namespace, lambda obj: obj is not None)
    await created(api, namespace, "forgotten", "dynamo")
    # The upstream operators are others' business: these are started again.
    end(fresh.simulators.pop())
    _, version = await api.list(MODEL_DEPLOYMENTS, namespace)
    # One of them reconnects only once the new history is as long as the lost one: no version looks old to it.
    late = processes["dynamo"]
    assert late is not None
    late.send_signal(signal.SIGSTOP)
    await asyncio.to_thread(fresh.plane.restore_etcd, tmp_path / "backup")
    fresh.simulate("dynamo", "kuberay")
    await scale(api, namespace, "scaled", 2)
    await write_until(api, namespace, int(version))
    late.send_signal(signal.SIGCONT)

    # Whatever a process knew, it does what is asked for now: at versions that it has seen once already.
    await served(api, namespace, "scaled", 2)
    await scaled(api, namespace, "deleted", 2)
    await scaled(api, namespace, "moved", 2)
    await created(api, namespace, "forgotten", "kuberay")
    # The upstream object that the backup holds is nobody else's, and goes with its owner.
    await api.delete(MODEL_DEPLOYMENTS, "moved", namespace, uid=moved["metadata"]["uid"])
    await until(api, MODEL_DEPLOYMENTS, "moved", namespace, lambda obj: obj is None)
    await until(api, GRAPHS, "moved", namespace, lambda obj: obj is None)
    assert {name: fresh.components[name].process for name in COMPONENTS} == processes
    assert [name for name in COMPONENTS if not fresh.components[name].running] == []
