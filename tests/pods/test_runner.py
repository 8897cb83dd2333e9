"""What the node does with the containers of a pod: in what order, how often, and what it says about them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kubefoundry_nodes.kubelet.image import Image
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._api.kinds import PODS
from kubefoundry_sdk._cluster.client import Client
from pods.example_pods import PLAIN, READY, container, pod, run, seen, waits
from support.waiting import until

pytestmark = pytest.mark.integration

NUMBERS = "".join(f"{number:05}" for number in range(1000))
"""5000 bytes, of which no two parts are alike."""
WRITE = "python3 -c \"print(*map('{:05}'.format, range(1000)), sep=str(), end=str())\""


@pytest.fixture(autouse=True)
def _image(node: Node) -> None:
    node.add(PLAIN)


async def test_init_containers_run_in_order_until_they_succeed(api: Client, namespace: str) -> None:
    shared = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    body = pod(
        namespace,
        container("main", "exec sleep infinity"),
        initContainers=[
            container("first", "echo first >> /shared/order", **shared),
            container(
                "second", "echo second >> /shared/order; mkdir /shared/again 2>&- && exit 3 || true", **shared
            ),
            container("third", "cat /shared/order > /dev/termination-log", **shared),
        ],
        volumes=[{"name": "shared", "emptyDir": {}}],
    )

    made = await run(api, body, READY)

    first, second, third = made["status"]["initContainerStatuses"]
    assert third["state"]["terminated"]["message"].split() == ["first", "second", "second"]
    assert [one["restartCount"] for one in (first, second, third)] == [0, 1, 0]
    assert second["lastState"]["terminated"]["exitCode"] == 3
    assert second["state"]["terminated"]["reason"] == "Completed"


async def test_init_container_that_fails_for_good_ends_the_pod(api: Client, namespace: str) -> None:
    body = pod(
        namespace,
        container("main", "exec sleep infinity"),
        initContainers=[container("first", "exit 7"), container("second", "true")],
        restartPolicy="Never",
    )

    made = await run(api, body, lambda status: status.get("phase") == "Failed")

    first, second = made["status"]["initContainerStatuses"]
    assert (first["state"]["terminated"]["exitCode"], first["state"]["terminated"]["reason"]) == (7, "Error")
    waiting = {"waiting": {"reason": "PodInitializing"}}
    assert [second["state"], made["status"]["containerStatuses"][0]["state"]] == [waiting, waiting]
    [initialized] = [one for one in made["status"]["conditions"] if one["type"] == "Initialized"]
    assert initialized["message"] == "containers with incomplete status: [first second]"


@pytest.mark.parametrize(
    ("containers", "script", "policy", "reported"),
    [
        (1, f"{WRITE} > /dev/termination-log; exit 1", "File", NUMBERS[-4096:]),
        (4, f"{WRITE} > /dev/termination-log; exit 1", "File", NUMBERS[-4096:][: 12288 // 4]),
        (4, f"echo said > /dev/termination-log; {WRITE}; exit 1", "FallbackToLogsOnError", "said\n"),
        (4, f"{WRITE}; exit 1", "FallbackToLogsOnError", NUMBERS[-2048:]),
        (7, f"{WRITE}; exit 1", "FallbackToLogsOnError", NUMBERS[-2048:][: 12288 // 7]),
        (4, "seq 100; exit 1", "FallbackToLogsOnError", "".join(f"{line}\n" for line in range(21, 101))),
        (4, f"{WRITE}; exit 1", "File", ""),
        (4, f"{WRITE}; exit 0", "FallbackToLogsOnError", ""),
    ],
)  # fmt: skip
async def test_termination_message_is_cut_as_a_kubelet_cuts_it(
    api: Client, namespace: str, containers: int, script: str, policy: str, reported: str
) -> None:
    others = [container(f"init-{number}", "true") for number in range(containers - 1)]
    main = container("main", script, terminationMessagePolicy=policy)

    made = await run(
        api,
        pod(namespace, main, initContainers=others, restartPolicy="Never"),
        lambda status: status.get("phase") in ("Failed", "Succeeded"),
    )

    assert made["status"]["containerStatuses"][0]["state"]["terminated"].get("message", "") == reported


async def test_pod_starts_once_its_image_can_be_pulled(api: Client, namespace: str, node: Node) -> None:
    late = Image(f"example.com/{namespace}:1", command=("sleep", "infinity"), user=1001)
    made = await run(
        api, pod(namespace, {"name": "main", "image": late.name}), lambda s: waits(s) == "ImagePullBackOff"
    )
    assert late.name in made["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
    assert made["status"]["phase"] == "Pending"

    node.add(late)

    made = await seen(api, made, READY)
    assert made["status"]["containerStatuses"][0]["imageID"] == late.digest
    node.remove_image(late.name)


@pytest.mark.parametrize(
    ("command", "code", "reason", "message"),
    [
        (["sh", "-c", "echo why > /dev/termination-log; exit 3"], 3, "Error", "why\n"),
        (["sh", "-c", "true"], 0, "Completed", ""),
        (["/no/such/program"], 128, "StartError", "/no/such/program: no such file or directory"),
        (["no-such-program"], 128, "StartError", "executable file not found in $PATH"),
    ],
)
async def test_container_that_ends_is_started_again(
    api: Client, namespace: str, command: list[str], code: int, reason: str, message: str
) -> None:
    body = pod(namespace, {"name": "main", "image": PLAIN.name, "command": command})

    made = await run(api, body, lambda status: waits(status) == "CrashLoopBackOff")

    [main] = made["status"]["containerStatuses"]
    ended = main["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (code, reason)
    assert message in ended.get("message", "")
    assert main["restartCount"] >= 1
    assert re.match(
        r"back-off \d+s restarting failed container=main pod=", main["state"]["waiting"]["message"]
    )


async def test_pod_without_a_fitting_node_is_unschedulable(api: Client, namespace: str) -> None:
    body = pod(namespace, container("main", "true"), nodeSelector={"gpu": "yes"})
    made = await run(api, body, lambda status: status.get("conditions"))
    [condition] = made["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "Unschedulable")


@pytest.mark.parametrize(
    ("grace", "script", "said"),
    [
        (
            60,
            "trap 'echo bye; exit 0' TERM; echo up; touch /tmp/up; while :; do sleep 0.1; done",
            ["up", "bye"],
        ),
        (1, "trap '' TERM; echo up; touch /tmp/up; while :; do sleep 0.1; done", ["up"]),
    ],
)
async def test_deletion_asks_waits_and_kills(
    api: Client, namespace: str, node: Node, grace: int, script: str, said: list[str]
) -> None:
    up = {"exec": {"command": ["test", "-e", "/tmp/up"]}, "periodSeconds": 1, "timeoutSeconds": 60}
    body = pod(
        namespace,
        container("main", f"{script} # {namespace}", readinessProbe=up),
        terminationGracePeriodSeconds=grace,
    )
    made = await run(api, body, READY)
    name = made["metadata"]["name"]
    assert running(namespace)

    await api.delete(PODS, name, namespace, uid=made["metadata"]["uid"])
    await until(api, PODS, name, namespace, lambda one: one is None)

    assert node.log(namespace, name, "main").split() == said
    assert not running(namespace)


def running(word: str) -> list[str]:
    """Command lines of shells that hold the word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if line.startswith("sh -ec") and word in line:
            found.append(line)
    return found


async def test_deleted_pod_runs_its_hook_before_sigterm(api: Client, namespace: str, node: Node) -> None:
    script = "trap 'echo asked to end; exit 0' TERM; while :; do sleep 0.05; done"
    # A hook's own output goes nowhere: this writes to the log of the container.
    words = "(echo hook begins; sleep 0.3; echo hook ends) > /proc/1/fd/1"
    hook = {"exec": {"command": ["sh", "-c", words]}}
    main = container("main", script, lifecycle={"preStop": hook})
    made = await run(api, pod(namespace, main, terminationGracePeriodSeconds=30), READY)

    await api.delete(PODS, made["metadata"]["name"], namespace, uid=made["metadata"]["uid"])
    await until(api, PODS, made["metadata"]["name"], namespace, lambda found: found is None)

    reported = node.log(namespace, made["metadata"]["name"], "main").splitlines()
    assert reported == ["hook begins", "hook ends", "asked to end"]


async def test_hook_that_takes_longer_than_the_grace_is_cut(api: Client, namespace: str) -> None:
    hook = {"exec": {"command": ["sleep", "infinity"]}}
    main = container("main", "exec sleep infinity", lifecycle={"preStop": hook})
    made = await run(api, pod(namespace, main), READY)

    await api.delete(PODS, made["metadata"]["name"], namespace, uid=made["metadata"]["uid"])

    await until(api, PODS, made["metadata"]["name"], namespace, lambda found: found is None)


async def test_container_over_its_memory_limit_is_killed(api: Client, namespace: str) -> None:
    # The kubelet may kill the first container before it starts the second one.
    states = ["terminated", "running"]
    script = "python3 -c 'import time; held = bytearray(64 << 20); time.sleep(600)'"
    limits = {"limits": {"memory": "32Mi"}}
    within = container("within", "exec sleep infinity", resources=limits)

    made = await run(
        api,
        pod(namespace, container("main", script, resources=limits), within, restartPolicy="Never"),
        lambda status: [next(iter(one["state"])) for one in status.get("containerStatuses", [])] == states,
    )

    ended = made["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
