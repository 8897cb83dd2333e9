"""Removes values that others wrote into our status fields, because an apply removes no fields of other managers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.reasons import OVERRIDES_VALID, STALE_STATUS
from kubefoundry_sdk._provider.reconcile import release
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._runtime import status

_PUBLISHED: Final = ("endpoint", "replicas", "selector")
"""Fields that clients and autoscalers act on."""
_WARNINGS: Final = frozenset({STALE_STATUS, OVERRIDES_VALID})
"""Conditions that exist only while they apply. If we do not report such a condition, somebody else wrote it."""


async def write(context: Context, live: Object, desired: Mapping[str, Any]) -> bool:
    """Make `desired` the status fields that we own, as `status.write`, and return whether a request was needed.

    A condition that we release is removed as a whole, even if somebody else also applied all or a part of it.

    Raises:
        ApiError: The status could not be written.
    """
    kept = {item["type"] for item in desired.get("conditions", ())}
    released = status.owned_conditions(live, context.manager) - kept
    whole = release.shared(live, context.manager, released)
    if whole:
        # Remove these conditions first, because after our apply nothing would show that they were ours.
        live = await _remove(context, live, (), whole)

    return await status.write(
        context.client, context.deployments, MODEL_DEPLOYMENTS, live, desired, manager=context.manager
    ) or bool(whole)


async def unpublish(context: Context, live: Object, desired: Mapping[str, Any]) -> None:
    """Remove published fields and warnings that are not in our status. Send no request if there are none.

    Args:
        context: The provider's context.
        live: The object with the status that we wrote.
        desired: All of that status.

    Raises:
        ApiError: The fields could not be removed.
    """
    current = live.get("status") or {}
    fields = [name for name in _PUBLISHED if name in current and name not in desired]
    reported = {item.get("type") for item in current.get("conditions") or ()}
    warnings = (reported & _WARNINGS) - {item["type"] for item in desired.get("conditions", ())}
    if fields or warnings:
        await _remove(context, live, fields, warnings)


async def _remove(
    context: Context, live: Object, fields: Collection[str], conditions: Collection[str]
) -> Object:
    return await status.remove(
        context.client,
        context.deployments,
        MODEL_DEPLOYMENTS,
        live,
        fields,
        conditions,
        manager=context.manager,
    )
