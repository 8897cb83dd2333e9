"""Objects of a ModelDeployment that is gone, while the garbage collector does nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import GPU
from support.edits import create_model
from support.kinds import UPSTREAM
from support.restarts import stopped
from support.waiting import message, phase, reason, until, until_deployment

pytestmark = pytest.mark.integration


@contextmanager
def frozen_controllers(suite: Suite) -> Iterator[None]:
    """Freeze Kubernetes' own controllers, among them the garbage collector."""
    pid = suite.plane.pids["kube-controller-manager"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def owner_uids(obj: Object) -> list[str]:
    return [owner["uid"] for owner in obj["metadata"]["ownerReferences"]]


async def test_left_over_object_makes_room_for_the_next_model(
    suite: Suite, api: Client, namespace: str
) -> None:
    kind, log = UPSTREAM["kaito"], AuditLog(suite)
    first = await create_model(api, namespace, GPU, "kaito")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")

    with frozen_controllers(suite):
        with stopped(suite.components["kaito"]):
            no_finalizers = [{"op": "remove", "path": "/metadata/finalizers"}]
            await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, no_finalizers, manager="user")
            await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=first["metadata"]["uid"])
            second = await create_model(api, namespace, GPU, "kaito")
        waiting = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "WaitingForCleanup"
        )
        uid = second["metadata"]["uid"]
        await until(api, kind, "m", namespace, lambda obj: obj is not None and owner_uids(obj) == [uid])

    assert "belongs to an earlier ModelDeployment" in message(waiting, "ResourceCreated")
    deletions = [
        component
        for component, entry in log.all(namespace)
        if entry["verb"] == "delete" and entry["objectRef"]["resource"] == kind.plural
    ]
    assert deletions == ["provider-kaito"]
