"""Taking a ModelDeployment over from another provider (contract §4.16).

First report that this provider can take over, then wait for the other provider's clean-up. After a time-out, continue
without it.
"""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk._api import handover, managed_fields, names, reasons
from kubefoundry_sdk._api.conditions import first_of
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.report import Stop
from kubefoundry_sdk._provider.write import apply
from kubefoundry_sdk._provider.write.plan import Plan
from kubefoundry_sdk._runtime.store import key_of

_WAITING: Final = "Waiting for provider "
_TO_REMOVE: Final = " to remove"


def other_holders(deployment: Object, provider: str) -> list[str]:
    """Return the other providers whose finalizers still hold the ModelDeployment."""
    return [name for name in handover.holders(deployment) if name != provider]


async def wait(
    context: Context, kind: Kind, write_plan: Plan, digest: str, live: Object, upstream: Object | None
) -> Stop | None:
    """Return the condition to report during the wait for another provider, or None if there is nothing to wait for.

    Its `retry` is the rest of the time-out. The other provider keeps serving until we report that we can take over,
    so our objects are first sent as a dry run of new objects, once for each plan. Missing helpers are created for
    that, because admission of the main object may require them.

    Args:
        context: The provider's context.
        kind: The kind of the main object.
        write_plan: The plan.
        digest: The plan's digest.
        live: The ModelDeployment.
        upstream: An object of ours that already exists.

    Raises:
        NameTaken: An object of another owner has the name. Other errors are those of `apply.write`.
    """
    memory = context.memory(key_of(live))
    holders = other_holders(live, context.provider.name)
    if not holders:
        memory.cleanup.reset()
        memory.accepted_digest = None
        return None
    if upstream is None and memory.accepted_digest != digest:
        await apply.check_name(context.client, kind, write_plan.main)
        await apply.try_replacement(
            context.client,
            kind,
            context.helpers,
            write_plan,
            manager=context.manager,
            admission=memory.admission,
        )
        memory.accepted_digest = digest
    now = context.clock()
    timeout = context.finalizer_timeout
    left = memory.cleanup.left([live["metadata"]["uid"], *holders], timeout, now)
    if left > 0:
        return waiting(holders, left)
    context.recorder.event(live, "Warning", "FinalizerTimeout", timed_out(holders, timeout))
    return None


def is_reported_by_other(deployment: Object, manager: str) -> bool:
    """Check whether another provider still reports on the model.

    That provider then owns phase, message, `Ready`, counts and endpoint.
    """
    provider = LiveModelDeployment(deployment).provider
    ours = (managed_fields.owned(deployment, manager, "status") or {}).get("f:status", {})
    return bool(provider.get("resourceName")) and "f:resourceName" not in ours.get("f:provider", {})


def waiting(holders: list[str], left: float) -> Stop:
    """Return the condition during the wait. `left` is the rest of the time-out in seconds."""
    finalizers = first_of([names.provider_finalizer(name) for name in holders])
    message = (
        f"{_WAITING}{', '.join(holders)}{_TO_REMOVE} the objects that it created for this ModelDeployment, "
        f"and finalizer {finalizers}"
    )
    return Stop(reasons.RESOURCE_CREATED, "WaitingForCleanup", message, failed=False, retry=left)


def awaited_providers(message: str) -> list[str]:
    """Return the providers that the message of `waiting` names, none if it is another message."""
    before, separator, _ = message.removeprefix(_WAITING).partition(_TO_REMOVE)
    return before.split(", ") if separator and message.startswith(_WAITING) else []


def timed_out(holders: list[str], timeout: float) -> str:
    """Return the Event's note once the time-out has passed."""
    return (
        f"Provider {', '.join(holders)} has not cleaned up in {timeout:.0f} s; continuing without it. "
        "Its objects may still run: delete them yourself"
    )
