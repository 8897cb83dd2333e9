"""Pods of services with pods of their own, and of the servers that call them."""

from __future__ import annotations

from typing import Any

from kubefoundry_sdk._cluster.client import Client
from support.llamastack import container, pod_status, until_pod

Object = dict[str, Any]

URL = "KUBEFOUNDRY_PROVIDER_GUARD_URL"


def own_label(name: str) -> str:
    return f"app=llama-stack-provider,kubefoundry.ai/llsd={name}"


def server_label(name: str) -> str:
    return f"app.kubernetes.io/instance={name}"


async def own_pod(api: Client, name: str, namespace: str, image: str = "example.com/guard:1") -> Object:
    """Return a pod of the service that runs the image, once it exists."""
    return await until_pod(
        api, namespace, own_label(name), lambda pod: pod["spec"]["containers"][0]["image"] == image
    )


async def run(api: Client, pod: Object, *, ready: bool = True) -> None:
    """Report the pod as a kubelet does whose containers all run."""
    statuses = [
        {**container(item["name"], item["image"], running={}), "ready": ready, "started": True}
        for item in pod["spec"]["containers"]
    ]
    conditions = [{"type": "Ready", "status": str(ready)}]
    body = {"phase": "Running", "conditions": conditions, "containerStatuses": statuses}
    await pod_status(api, pod, body)


async def run_server(api: Client, name: str, namespace: str, address: str | None) -> None:
    """Let a pod of the server run that has this address of the service."""
    pod = await until_pod(
        api, namespace, server_label(name), lambda pod: variable({"spec": {"template": pod}}) == address
    )
    await run(api, pod)


def variable(body: Object) -> str | None:
    """Return the address of the service in a Deployment of the server."""
    [server] = [
        item for item in body["spec"]["template"]["spec"]["containers"] if item["name"] == "llama-stack"
    ]
    return next((item["value"] for item in server["env"] if item["name"] == URL), None)
