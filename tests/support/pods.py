"""Pods as an upstream operator would make them, in the states that a kubelet would report: there is none here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubefoundry_sdk.api.kinds import PODS, Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError

ACCOUNTS: Final = Kind("", "v1", "serviceaccounts", "ServiceAccount")
SINCE: Final = "2026-01-01T00:00:00Z"
"""When it all happened: long ago."""


def waiting(reason: str, message: str) -> Object:
    return _container({"waiting": {"reason": reason, "message": message}})


def crash_loop(last_words: str, restarts: int = 4) -> Object:
    end = {"exitCode": 1, "reason": "Error", "message": last_words, "startedAt": SINCE, "finishedAt": SINCE}
    back_off = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}
    return _container(back_off, lastState={"terminated": end}, restartCount=restarts)


def ready() -> Object:
    return _container({"running": {"startedAt": SINCE}}, ready=True)


def unschedulable(message: str) -> Object:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [condition]}


def gated() -> Object:
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gated"}
    return {"phase": "Pending", "conditions": [condition]}


def refused(reason: str, message: str) -> Object:
    """A pod that its node refuses before it starts a container."""
    return {"phase": "Failed", "reason": reason, "message": message}


def evicted(message: str) -> Object:
    """A pod that had restarted once before its node evicted it."""
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
    """Makes the pod, or has its kubelet report another status."""
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
    """Without the ServiceAccount of a namespace no pod is admitted; where its controller runs, it makes the same."""
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
    return {"phase": "Running", "containerStatuses": [status]}
