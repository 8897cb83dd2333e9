"""Changes of ModelDeployment `m` by a user."""

from __future__ import annotations

from typing import Any

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client


async def annotate(api: Client, namespace: str, name: str, value: str | None) -> None:
    """Set the annotation, or remove it if the value is None."""
    live = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    path = "/metadata/annotations"
    change: list[dict[str, Any]] = []
    if not live["metadata"].get("annotations"):
        change.append({"op": "add", "path": path, "value": {}})
    pointer = f"{path}/{name.replace('/', '~1')}"
    change.append(
        {"op": "remove", "path": pointer} if value is None else {"op": "add", "path": pointer, "value": value}
    )
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, change, manager="test")


async def change_spec(api: Client, namespace: str, pointer: str, value: Any) -> Object:
    """Set a field of the object by a JSON pointer, and return the object."""
    return await edit_model(api, namespace, {"op": "add", "path": pointer, "value": value})


async def edit_model(api: Client, namespace: str, *operations: dict[str, Any]) -> Object:
    """Apply the operations of a JSON patch, and return the object."""
    return await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, operations, manager="test")
