"""LlamaStackDistributions for tests, and waiting for the operator's objects and status."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Any

from kubefoundry_llamastack.api.crd import at, definition
from kubefoundry_llamastack.names import DEPLOYMENTS, LLSD, PODS
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.waiting import SECONDS, until

SERVER: dict[str, Any] = {"distribution": {"image": "example.com/stack:1"}, "containerSpec": {"port": 8321}}
"""A small complete server: the operator creates a Service, a Deployment and an account."""

ECHO: dict[str, Any] = {"providerId": "echo", "image": "example.com/echo:1", "config": {"prefix": "hi"}}
GUARD: dict[str, Any] = {"providerId": "guard", "image": "example.com/guard:1"}


def llsd(name: str, namespace: str, spec: dict[str, Any] | None = None, **server: Any) -> Object:
    """Return an object to create. Keyword arguments are fields of spec.server."""
    return {
        "apiVersion": LLSD.api_version,
        "kind": LLSD.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**(spec or {}), "server": {**copy.deepcopy(SERVER), **server}},
    }


def crd_without_services() -> Object:
    """Return the CRD of an earlier release: without all fields that services of providers have added."""
    crd = definition()
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for section in at(schema, "spec.server.externalProviders")["properties"].values():
        del section["items"]["properties"]["service"]
    del at(schema, "status")["properties"]["providersReady"]
    for field in ("type", "mode", "container", "endpoint", "ready", "restarts"):
        del at(schema, "status.externalProviderStatus[]")["properties"][field]
    return crd


async def edit(
    api: Client, name: str, namespace: str, change: Callable[[Object], None], kind: Kind = LLSD
) -> Object:
    """Change an object as `kubectl edit` does."""
    while True:
        live = await api.get(kind, name, namespace)
        change(live)
        try:
            return await api.replace(kind, live, manager="user")
        except ApiError as error:
            # Another writer, for example of the status, was faster. kubectl also asks for the edit again.
            if not error.conflict:
                raise


async def until_status(
    api: Client, name: str, namespace: str, holds: Callable[[Object], Any], *, seconds: float = SECONDS
) -> Object:
    """Return the CR's status once it exists and `holds` is true of it."""

    def status_holds(obj: Object | None) -> bool:
        return obj is not None and "status" in obj and bool(holds(obj["status"]))

    obj = await until(api, LLSD, name, namespace, status_holds, seconds=seconds)
    assert obj is not None
    return dict(obj["status"])


async def until_object(
    api: Client, kind: Kind, name: str, namespace: str, holds: Callable[[Object], Any] = bool
) -> Object:
    """Return the object once `holds` is true of it."""
    obj = await until(api, kind, name, namespace, lambda obj: obj is not None and holds(obj))
    assert obj is not None
    return obj


async def until_gone(api: Client, kind: Kind, name: str, namespace: str) -> None:
    """Wait until the object does not exist."""
    await until(api, kind, name, namespace, lambda obj: obj is None)


def condition_of(status: Object, type_: str) -> Object:
    """Return the condition with this type, or an empty object."""
    return next((item for item in status.get("conditions") or () if item["type"] == type_), {})


def reason(status: Object, type_: str) -> str:
    """Return the reason of the condition with this type, or empty text."""
    return str(condition_of(status, type_).get("reason", ""))


async def deployment(api: Client, name: str, namespace: str) -> Object:
    """Return the Deployment once it exists."""
    return await until_object(api, DEPLOYMENTS, name, namespace)


async def new_pod(api: Client, name: str, namespace: str, image: str) -> Object:
    """Return a pod of the CR that runs the image, once it exists."""

    def runs_image(obj: Object) -> bool:
        parts = (*obj["spec"].get("initContainers", ()), *obj["spec"]["containers"])
        return image in {item["image"] for item in parts}

    return await until_pod(api, namespace, f"app.kubernetes.io/instance={name}", runs_image)


async def until_pod(api: Client, namespace: str, label: str, holds: Callable[[Object], Any]) -> Object:
    """Return a pod with this label that is not being deleted, once `holds` is true of one."""

    def fits(obj: Object) -> bool:
        return not obj["metadata"].get("deletionTimestamp") and bool(holds(obj))

    selector = {"labelSelector": label}
    async with asyncio.timeout(SECONDS):
        items, version = await api.list(PODS, namespace, selector=selector)
        for item in filter(fits, items):
            return item
        async for event in api.watch(
            PODS, namespace, resource_version=version, seconds=60, silence=60, selector=selector
        ):
            if event["type"] in ("ADDED", "MODIFIED") and fits(event["object"]):
                pod: Object = event["object"]
                return pod
    raise AssertionError(f"no pod of {namespace} with {label} is as expected")


async def pod_status(api: Client, pod: Object, status: Object) -> None:
    """Write a pod's status as a kubelet does."""
    meta = {key: pod["metadata"][key] for key in ("name", "namespace")}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": status}
    await api.apply_status(PODS, body, manager="kubelet")


def container(name: str, image: str = "example.com/any:1", **state: Object) -> Object:
    """Return a container's status.

    Args:
        name: Name of the container.
        image: Its image.
        state: `running={}`, `terminated={...}` or `waiting={...}`; also `last={...}`, the end of its last run.
    """
    last = state.pop("last", None)
    status: Object = {
        "name": name,
        "image": image,
        "imageID": f"{image}@sha256:0",
        "ready": "running" in state,
        "restartCount": 1 if last else 0,
        "state": state,
    }
    return {**status, "lastState": {"terminated": last}} if last else status
