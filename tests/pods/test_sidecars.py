"""Sidecars, which are init containers that restart: their start, their restarts and their end."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._api.kinds import PODS, Object
from kubefoundry_sdk._cluster.client import Client
from pods.example_pods import PLAIN, READY, container, pod, run, seen
from support.waiting import until

pytestmark = pytest.mark.integration

SHARED: Final = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
VOLUME: Final = [{"name": "shared", "emptyDir": {}}]
STAYS: Final = "exec sleep infinity"
SAYS_END: Final = "trap 'date +%s%N; exit 0' TERM; touch /tmp/up; while :; do sleep 0.05; done"
UP: Final = {"exec": {"command": ["test", "-e", "/tmp/up"]}, "periodSeconds": 1, "timeoutSeconds": 60}
NEVER: Final = {
    "exec": {"command": ["false"]},
    "periodSeconds": 1,
    "timeoutSeconds": 60,
    "failureThreshold": 1000,
}


@pytest.fixture(autouse=True)
def _image(node: Node) -> None:
    node.add(PLAIN)


def sidecar(name: str, script: str, **fields: Any) -> Object:
    return container(name, script, restartPolicy="Always", **fields)


def condition(status: Object, kind: str) -> Object:
    [condition] = [item for item in status.get("conditions") or () if item["type"] == kind]
    return dict(condition)


async def test_next_container_waits_until_sidecar_has_started(
    api: Client, namespace: str, node: Node
) -> None:
    starts = sidecar("side", f"sleep 1; echo side >> /shared/order; {SAYS_END}", startupProbe=UP, **SHARED)
    body = pod(
        namespace,
        container("main", f"cat /shared/order; touch /tmp/up; {STAYS}", readinessProbe=UP, **SHARED),
        initContainers=[starts, container("init", "echo init >> /shared/order", **SHARED)],
        volumes=VOLUME,
    )

    made = await run(api, body, READY)

    assert node.log(namespace, made["metadata"]["name"], "main").split() == ["side", "init"]
    side, init = made["status"]["initContainerStatuses"]
    assert "running" in side["state"]
    assert (side["started"], side["ready"], side["restartCount"]) == (True, True, 0)
    assert init["state"]["terminated"]["reason"] == "Completed"


async def test_pod_stays_pending_when_sidecar_does_not_start(api: Client, namespace: str) -> None:
    side = sidecar("side", STAYS, startupProbe=NEVER)
    body = pod(namespace, container("main", STAYS), initContainers=[side])

    made = await run(
        api,
        body,
        lambda status: "running" in status.get("initContainerStatuses", [{"state": ()}])[0]["state"],
    )

    [state] = made["status"]["initContainerStatuses"]
    assert (state["started"], state["ready"]) == (False, False)
    assert made["status"]["phase"] == "Pending"
    message = "containers with incomplete status: [side]"
    assert condition(made["status"], "Initialized")["message"] == message
    [main] = made["status"]["containerStatuses"]
    assert main["state"] == {"waiting": {"reason": "PodInitializing"}}


async def test_sidecar_restarts_alone_when_it_exits(api: Client, namespace: str) -> None:
    once = "mkdir /shared/once 2>&- || exec sleep infinity; until [ -e /shared/main ]; do sleep 0.05; done; exit 3"
    body = pod(
        namespace,
        container("main", f"touch /shared/main; {STAYS}", **SHARED),
        initContainers=[sidecar("side", once, **SHARED)],
        volumes=VOLUME,
    )

    made = await run(
        api,
        body,
        lambda status: READY(status) and status["initContainerStatuses"][0]["restartCount"] == 1,
    )

    [side], [main] = made["status"]["initContainerStatuses"], made["status"]["containerStatuses"]
    assert side["lastState"]["terminated"]["exitCode"] == 3
    assert main["restartCount"] == 0
    assert made["status"]["phase"] == "Running"


async def test_pod_is_unready_when_sidecar_is_unready(api: Client, namespace: str) -> None:
    side = sidecar("side", STAYS, readinessProbe=NEVER)
    made = await run(
        api,
        pod(namespace, container("main", STAYS), initContainers=[side]),
        lambda status: any(item["ready"] for item in status.get("containerStatuses") or ()),
    )

    assert condition(made["status"], "Ready")["message"] == "containers with unready status: [side]"
    assert condition(made["status"], "Initialized")["status"] == "True"
    assert made["status"]["phase"] == "Running"


async def test_sidecars_end_after_main_in_reverse_order(api: Client, namespace: str, node: Node) -> None:
    body = pod(
        namespace,
        container("main", SAYS_END, readinessProbe=UP),
        initContainers=[sidecar(name, SAYS_END, startupProbe=UP) for name in ("first", "second")],
        terminationGracePeriodSeconds=60,
    )
    made = await run(api, body, READY)
    name = made["metadata"]["name"]

    await api.delete(PODS, name, namespace, uid=made["metadata"]["uid"])
    await until(api, PODS, name, namespace, lambda found: found is None)

    ends = [int(node.log(namespace, name, part)) for part in ("main", "second", "first")]
    assert ends == sorted(ends)
    assert len(set(ends)) == 3


async def test_sidecar_is_stopped_when_all_others_have_succeeded(api: Client, namespace: str) -> None:
    body = pod(
        namespace,
        container("main", "true"),
        initContainers=[sidecar("side", SAYS_END, startupProbe=UP)],
        restartPolicy="Never",
    )

    made = await run(api, body, lambda status: status.get("phase") == "Succeeded")

    [side] = made["status"]["initContainerStatuses"]
    assert side["state"]["terminated"]["exitCode"] == 0


async def test_sidecar_shares_the_network_of_its_pod(api: Client, namespace: str) -> None:
    listens = "exec python3 -m http.server --bind 0.0.0.0 18400"
    answers = {"httpGet": {"path": "/", "port": 18400}, "periodSeconds": 1, "failureThreshold": 60}
    calls = 'import urllib.request as r; print(r.urlopen("http://127.0.0.1:18400/").status)'
    body = pod(
        namespace,
        container("main", f"python3 -c '{calls}' > /dev/termination-log"),
        initContainers=[sidecar("side", listens, startupProbe=answers)],
        restartPolicy="Never",
    )

    made = await run(api, body, lambda status: status.get("phase") in ("Succeeded", "Failed"))

    [main] = made["status"]["containerStatuses"]
    assert main["state"]["terminated"]["message"] == "200\n"


async def test_sidecar_restarts_alone_when_its_liveness_probe_fails(api: Client, namespace: str) -> None:
    """The probe runs in the sidecar, and the first run of the sidecar never passes it."""
    once = f"mkdir /shared/once 2>&- || touch /tmp/up; {STAYS}"
    body = pod(
        namespace,
        container("main", STAYS),
        initContainers=[sidecar("side", once, livenessProbe={**UP, "failureThreshold": 1}, **SHARED)],
        volumes=VOLUME,
    )
    made = await run(api, body, lambda status: "initContainerStatuses" in status)

    made = await seen(
        api,
        made,
        lambda status: READY(status) and status["initContainerStatuses"][0]["restartCount"] == 1,
    )

    assert made["status"]["containerStatuses"][0]["restartCount"] == 0
