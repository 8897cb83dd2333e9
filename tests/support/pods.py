"""Create the pods of an upstream operator, with a status that a kubelet would report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubefoundry_sdk._api.kinds import PODS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError

ACCOUNTS: Final = Kind("", "v1", "serviceaccounts", "ServiceAccount")
SINCE: Final = "2026-01-01T00:00:00Z"
"""The time of all transitions, long ago."""


def waiting(reason: str, message: str) -> Object:
    """Return the status of a pod whose container waits."""
    return _container({"waiting": {"reason": reason, "message": message}})


def crash_loop(last_words: str, restarts: int = 4) -> Object:
    """Return the status of a pod in a crash loop. `last_words` is the termination message."""
    end = {"exitCode": 1, "reason": "Error", "message": last_words, "startedAt": SINCE, "finishedAt": SINCE}
    back_off = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}
    return _container(back_off, lastState={"terminated": end}, restartCount=restarts)


def ready() -> Object:
    """Return the status of a pod whose container is ready."""
    return _container({"running": {"startedAt": SINCE}}, ready=True)


def unschedulable(message: str) -> Object:
    """Return the status of a pod that fits on no node."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [condition]}


def gated() -> Object:
    """Return the status of a pod with scheduling gates."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gated"}
    return {"phase": "Pending", "conditions": [condition]}


def refused(reason: str, message: str) -> Object:
    """Return the status of a pod that its node refuses before it starts a container."""
    return {"phase": "Failed", "reason": reason, "message": message}


def evicted(message: str) -> Object:
    """Return the status of a pod that had restarted once before its node evicted it."""
    end = {"exitCode": 137, "reason": "Error", "startedAt": SINCE, "finishedAt": SINCE}
    status = _container({"terminated": end}, restartCount=1)
    return {**status, **refused("Evicted", message)}


async def pod(
    client: Client,
    namespace: str,
    name: str,
    labels: dict[str, str],
    status: Object,
    gates: Sequence[str] = (),
) -> None:
    """Create a pod with a status, or update the status of an existing pod."""
    await account(client, namespace)
    body: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
    }
    container = {"name": "main", "image": "example.com/engine:1"}
    try:
        spec = {"containers": [container], "schedulingGates": [{"name": gate} for gate in gates]}
        await client.create(PODS, {**body, "spec": spec}, manager="kubelet")
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
    change: list[dict[str, Any]] = [{"op": "add", "path": "/status", "value": status}]
    await client.json_patch(PODS, f"{name}/status", namespace, change, manager="kubelet")


async def account(client: Client, namespace: str) -> None:
    """Create the namespace's ServiceAccount, if its controller has not. No pod is admitted without it."""
    body = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": namespace},
    }
    try:
        await client.create(ACCOUNTS, body, manager="test")
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise


def _container(state: Object, **more: Any) -> Object:
    status = {
        "name": "main",
        "image": "example.com/engine:1",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": state,
        **more,
    }
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": SINCE}
    return {"phase": "Running", "conditions": [scheduled], "containerStatuses": [status]}
