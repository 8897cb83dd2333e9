"""The steps of a model's start in its status, from pods of Kubernetes' own controllers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.conditions import rfc3339
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PODS, Object
from kubefoundry_sdk._api.names import MODEL_LABEL
from kubefoundry_sdk._api.status import StepName
from kubefoundry_sdk._cluster.client import Client
from support import pods
from support.audit import AuditLog
from support.command_line import CommandLine
from support.deployments import CPU, model_deployment
from support.played_pods import node
from support.suites import running_suite
from support.waiting import SECONDS, serves, until_deployment

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core and direct, with all of Kubernetes' controllers."""
    with running_suite(tmp_path_factory.mktemp("start"), plane_flags=["--all-controllers"]) as made:
        made.start("core", "direct")
        yield made


def ready_later(pod: Object) -> Object:
    """Return the status of a pod that was scheduled after 2 s, started after 5 s, and ready after 25 s."""
    created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"]).astimezone(UTC)
    scheduled, started, is_ready = (rfc3339(created + timedelta(seconds=seconds)) for seconds in (2, 5, 25))
    container = {"name": "server", "image": "i", "imageID": "i", "restartCount": 0, "ready": True}
    return {
        "phase": "Running",
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled},
            {"type": "Ready", "status": "True", "lastTransitionTime": is_ready},
        ],
        "containerStatuses": [{**container, "state": {"running": {"startedAt": started}}}],
    }


def ready(obj: Object) -> int:
    return int(obj["status"].get("replicas", {}).get("ready", 0)) if serves(obj) else 0


async def create(api: Client, namespace: str, name: str = "m", replicas: int = 1) -> None:
    spec = {**CPU, "scaling": {"replicas": replicas}}
    body = model_deployment(name, namespace, spec, provider="direct")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")


async def test_start_names_the_awaited_step_and_then_all_seconds(
    suite: Suite, api: Client, namespace: str
) -> None:
    await create(api, namespace)
    async with node(api, namespace, lambda pod: pods.unschedulable("0/1 nodes are available")):
        waiting = await until_deployment(
            api, "m", namespace, lambda obj: "0/1 nodes are available" in str(obj.get("status"))
        )
    [pod] = (await api.list(PODS, namespace))[0]
    async with node(api, namespace, ready_later):
        serving = await until_deployment(api, "m", namespace, serves)
    shown = await CommandLine(suite.plane.kubeconfig, namespace)("status", "m")

    name = pod["metadata"]["name"]
    [first, awaited] = waiting["status"]["start"]["steps"]
    assert first["name"] == "PodCreated" and 0 <= first["seconds"] <= SECONDS
    assert awaited == {"name": "PodScheduled", "since": pod["metadata"]["creationTimestamp"]}
    assert waiting["status"]["start"]["pod"] == serving["status"]["start"]["pod"] == name
    assert serving["status"]["start"]["steps"] == [
        first,
        {"name": "PodScheduled", "seconds": 2},
        {"name": "ContainersStarted", "seconds": 3},
        {"name": "PodReady", "seconds": 20},
    ]
    steps = f"created {first['seconds']}s, scheduled 2s, containers started 3s, ready 20s"
    assert f"pod {name}: {steps}\n" in shown.out


async def test_replaced_pod_and_new_process_keep_the_start(suite: Suite, api: Client, namespace: str) -> None:
    await create(api, namespace, replicas=2)
    async with node(api, namespace, ready_later):
        started = await until_deployment(api, "m", namespace, lambda obj: ready(obj) == 2)
        log = AuditLog(suite)
        suite.components["direct"].stop()
        suite.start("direct")
        # Turns are taken in order: when the second model serves, the first one has had its turn.
        await create(api, namespace, "second")
        await until_deployment(api, "second", namespace, serves)
        silent = [
            write for write in log.writes("provider-direct", namespace, "modeldeployments") if "/m/" in write
        ]
    # Without a node, the new pod waits.
    pod = (await api.list(PODS, namespace, selector={"labelSelector": f"{MODEL_LABEL}=m"}))[0][0]
    await api.delete(PODS, pod["metadata"]["name"], namespace, uid=pod["metadata"]["uid"])
    one_less = await until_deployment(api, "m", namespace, lambda obj: ready(obj) == 1)
    async with node(api, namespace, ready_later):
        replaced = await until_deployment(api, "m", namespace, lambda obj: ready(obj) == 2)

    assert silent == []
    assert [step["name"] for step in started["status"]["start"]["steps"]] == list(get_args(StepName))
    assert one_less["status"]["start"] == replaced["status"]["start"] == started["status"]["start"]
