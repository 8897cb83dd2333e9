"""Small pods for the runner's own tests."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from kubefoundry_nodes.kubelet.image import Image
from kubefoundry_sdk._api.kinds import PODS, Object
from kubefoundry_sdk._cluster.client import Client
from support.waiting import until

PLAIN: Final = Image("example.com/plain:1")
"""Nothing but the root that all images share."""

CLAIM: Final[Object] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def container(name: str, script: str, **fields: Any) -> Object:
    """A container that runs a shell script."""
    return {"name": name, "image": PLAIN.name, "command": ["sh", "-ec", script], **fields}


def pod(namespace: str, *containers: Object, **spec: Any) -> Object:
    """One of a name of its own, which is its label `app`, too."""
    name = f"p-{uuid.uuid4().hex[:8]}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"containers": list(containers), "terminationGracePeriodSeconds": 1, **spec},
    }


def config_map(namespace: str, name: str, data: Mapping[str, str]) -> Object:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": dict(data)}


def secret(namespace: str, name: str, data: Mapping[str, str]) -> Object:
    coded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "data": coded,
    }


async def run(api: Client, body: Object, holds: Callable[[Object], Any]) -> Object:
    """Creates the pod and waits until this is true of its status."""
    return await seen(api, await api.create(PODS, body, manager="test"), holds)


async def seen(api: Client, made: Object, holds: Callable[[Object], Any]) -> Object:
    """The pod, as soon as this is true of its status."""
    meta = made["metadata"]
    found = await until(
        api, PODS, meta["name"], meta["namespace"], lambda one: one is not None and holds(one["status"])
    )
    assert found is not None
    return found


def READY(status: Object) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())


def waits(status: Object) -> str:
    """Why the first container waits."""
    [first, *_] = status.get("containerStatuses") or [{"state": {}}]
    return str((first["state"].get("waiting") or {}).get("reason", ""))
