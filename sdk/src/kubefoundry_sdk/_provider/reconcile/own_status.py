"""The provider's status: applied also with earlier CRDs, and freed of values that others wrote into its fields."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping
from typing import Any, Final

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._api.reasons import OVERRIDES_VALID, READY, STALE_STATUS
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.reconcile import release, start_report
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._runtime import status
from kubefoundry_sdk._runtime.store import key_of

log = logging.getLogger(__name__)

AGAIN: Final = 600.0
"""Seconds after which a field that the CRD seemed to lack is written again."""

_NEW: Final = ("endpoint.model", "endpoint.apis", "start")
"""Fields that the CRDs of an earlier release lack."""

_PUBLISHED: Final = ("endpoint", "replicas", "selector", "start")
"""Fields that clients, autoscalers and users act on."""
_REPORTED: Final = (
    *("phase", "message", "observedGeneration"),
    *_PUBLISHED,
    *(f"provider/resource{part}" for part in ("Name", "Kind", "APIVersion")),
)
"""The fields of the provider that serves (contract §3)."""
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

    return await _apply(context, live, desired) or bool(whole)


async def _apply(context: Context, live: Object, desired: Mapping[str, Any]) -> bool:
    """Apply the status, without the fields that the CRD lacks.

    The CRDs may be those of an earlier release. For a field that they lack, the API server refuses the whole status
    with an error that has neither a reason nor a cause, so only its text names the field.
    """
    while True:
        lacking = {name for name in _NEW if context.clock() < context.lacking.get(name, -math.inf)}
        fields = start_report.riding(live, _without(desired, lacking), context.manager)
        try:
            return await status.write(
                context.client,
                context.deployments,
                MODEL_DEPLOYMENTS,
                live,
                fields,
                manager=context.manager,
                named=True,
            )
        except ApiError as error:
            named = [name for name in _NEW if name not in lacking and f".status.{name}:" in error.message]
            if error.code != 500 or not named:
                raise
            context.lacking |= dict.fromkeys(named, context.clock() + AGAIN)
            log.warning(
                "fields of the status left out; upgrade the CRDs of KubeFoundry",
                extra=logs.values(fields=named, error=error.message),
            )


def _without(desired: Mapping[str, Any], paths: Collection[str]) -> dict[str, Any]:
    """Return the status without the fields at these paths."""
    left = {name: value for name, value in desired.items() if name not in paths}
    if endpoint := left.get("endpoint"):
        left["endpoint"] = {
            name: value for name, value in endpoint.items() if f"endpoint.{name}" not in paths
        }
    return left


async def unpublish(context: Context, live: Object, desired: Mapping[str, Any]) -> None:
    """Remove published fields and warnings that are not in our status. Send no request if there are none.

    `desired` is all of the status that we wrote to `live`. Raise ApiError if the fields could not be removed.
    """
    current = live.get("status") or {}
    kept = {"start"} if start_report.own(live, context.manager) else frozenset()
    fields = [name for name in _PUBLISHED if name in current and name not in desired and name not in kept]
    reported = {item.get("type") for item in current.get("conditions") or ()}
    warnings = (reported & _WARNINGS) - {item["type"] for item in desired.get("conditions", ())}
    if fields or warnings:
        await _remove(context, live, fields, warnings)


async def withdraw(context: Context, live: Object) -> None:
    """Release all of our status once our objects are gone. Raise ApiError if that fails.

    After a reset of managedFields, another manager owns our values, too, and keeps them: readers would take the model
    for one that serves, and the chosen provider would wait for our report. So remove them as a whole, unless the
    chosen provider reports already.
    """
    await write(context, live, {})
    left = context.deployments.get(key_of(live))
    if left is None or left["metadata"]["uid"] != live["metadata"]["uid"]:
        return
    if LiveModelDeployment(left).provider.get("resourceName") and release.should_report(
        left, context.manager
    ):
        await _remove(context, left, _REPORTED, {READY, *_WARNINGS})


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
