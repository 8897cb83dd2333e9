"""Taking out of the status what others have written where it is ours to say: an apply cannot take away another's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk.cluster.errors import ApiError
from kubefoundry_sdk.provider.reconcile.context import Context
from kubefoundry_sdk.runtime.store import key_of

_PUBLISHED: Final = ("endpoint", "replicas", "selector")
"""What clients and autoscalers act on."""


async def unpublish(context: Context, live: Object, wanted: Mapping[str, Any]) -> None:
    """Removes published fields that we do not state; no request where there are none.

    live: the object with the status that we have written. wanted: all of that. Raises ApiError.
    """
    left = [name for name in _PUBLISHED if name in (live.get("status") or {}) and name not in wanted]
    if left:
        await remove(context, live, left, ())


async def remove(
    context: Context, live: Object, fields: Collection[str], conditions: Collection[str]
) -> Object:
    """Removes these fields and the conditions of these types, whoever has written them; the object as stored.

    Raises ApiError, a conflict where the object has changed meanwhile.
    """
    meta, status = live["metadata"], live.get("status") or {}
    operations: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]}
    ]
    operations += [{"op": "remove", "path": f"/status/{name}"} for name in fields if name in status]
    # From the end: what is removed moves what comes after it.
    for index, item in reversed(list(enumerate(status.get("conditions") or ()))):
        if item.get("type") in conditions:
            operations.append({"op": "remove", "path": f"/status/conditions/{index}"})
    if len(operations) == 1:
        return live
    try:
        stored = await context.client.json_patch(
            MODEL_DEPLOYMENTS,
            meta["name"],
            meta["namespace"],
            operations,
            manager=context.manager,
            subresource="/status",
        )
    except ApiError as error:
        if error.code == 422:
            # A failed test is answered as Invalid; to us it is a conflict like any other.
            raise ApiError(409, "Conflict", error.message) from error
        raise
    context.deployments.put(stored)
    return context.deployments.get(key_of(live)) or stored
