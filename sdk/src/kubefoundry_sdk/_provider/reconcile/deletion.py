"""Cleans up for a ModelDeployment that is being deleted or that another provider now serves (contract §4.3, §4.6)."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from kubefoundry_sdk._api import conditions, names, reasons
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.reconcile import (
    finalizer,
    own_status,
    pace,
    release,
    removal,
    retained,
    unmarked,
)
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.handover import other_holders
from kubefoundry_sdk._provider.reconcile.observation import observe
from kubefoundry_sdk._provider.reconcile.report import Report, Stop
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._runtime.store import key_of
from kubefoundry_sdk._runtime.wait import sooner

log = logging.getLogger(__name__)


async def terminate(context: Context, live: Object, reports: bool) -> float | None:
    """Delete the upstream objects, wait until they are gone, and remove the finalizer (step 3).

    After the time-out the finalizer is removed even if objects are left. `reports`: whether this provider owns the
    status. Return the seconds until the next reconcile is due, or None. Raise ApiError or Unreachable if the status
    or the finalizer could not be written.
    """
    remaining = _time_left(context, live)
    unmarked.remember(context, live)
    objects = removal.state(context, live)
    memory = context.memory(key_of(live)).removal
    report_message = partial(_report_terminating, context, live) if reports else None
    if remaining > 0 and (wait := memory.left(objects, context.clock())):
        return min(wait, remaining + 0.1)
    try:
        left = await _clean_up(context, live)
    except ApiError as error:
        if remaining > 0:
            problem = "The upstream objects could not be deleted"
            return min(
                await removal.put_off(context, live, objects, problem, error, report_message), remaining + 0.1
            )
        left = [str(error)]
    if left and remaining > 0:
        if reports:
            finalizers = finalizer.holding(context, live)
            unknown = f". {context.upstream.unlisted}" if context.upstream.unlisted else ""
            message = f"Waiting for {', '.join(left)} to be deleted{finalizers}{unknown}"
            await _report_terminating(context, live, message)
        return remaining + 0.1
    objects = removal.state(context, live, "finalizer")
    if wait := memory.left(objects, context.clock()):
        return wait
    if not left:
        for note in await unmarked.describe_leftovers(context, live):
            log.warning("object left", extra=logs.values(note=note))
            context.recorder.event(live, "Warning", "ObjectLeft", note)
    try:
        await _release(context, live, left)
    except ApiError as error:
        problem = f"Finalizer {names.provider_finalizer(context.provider.name)} could not be removed"
        return await removal.put_off(context, live, objects, problem, error, report_message)
    return None


async def report_other_finalizers(context: Context, live: Object) -> None:
    """Report the finalizers that still keep the ModelDeployment, once none of our objects exists (step 3)."""
    message = f"Waiting for finalizers: {', '.join(live['metadata'].get('finalizers') or ())}"
    try:
        await _report_terminating(context, live, message)
    except ApiError as error:
        if not error.not_found:
            raise
        # The ModelDeployment was deleted meanwhile, and its watch event will arrive.


async def give_up(context: Context, live: Object, reports: bool) -> float | None:
    """Report that the upstream objects cannot be listed, and remove the finalizer after the time-out (step 2).

    Takes and returns the same as `terminate`.
    """
    meta = live["metadata"]
    upstream = context.provider.upstream
    remaining = _time_left(context, live)
    if remaining > 0:
        if reports and context.upstream.unlisted:
            waiting = f"Waiting for {upstream.kind} {meta['namespace']}/{meta['name']} to be deleted"
            await _report_terminating(context, live, f"{waiting}. {context.upstream.unlisted}")
        return remaining + 0.1
    left = f"{upstream.kind} {meta['namespace']}/{meta['name']} (unknown: {upstream.crd} cannot be listed)"
    await _release(context, live, [left])
    return None


def _time_left(context: Context, live: Object) -> float:
    """Return the seconds until the time-out, counted from when this process first saw the deletion."""
    now = context.clock()
    wait = context.memory(key_of(live)).deletion
    return wait.left([live["metadata"]["uid"]], context.finalizer_timeout, now)


async def _release(context: Context, live: Object, left: list[str]) -> None:
    """Remove our finalizer, and report the remaining objects."""
    meta = live["metadata"]
    if left:
        note = "Finalizer removed after timeout, provider resource may be orphaned"
        named = f"{', '.join(left)}{finalizer.holding(context, live)}"
        log.warning("finalizer removed after timeout", extra=logs.values(objects=named))
        context.recorder.event(live, "Warning", "FinalizerTimeout", f"{note}: {named}")
    own = names.provider_finalizer(context.provider.name)
    current = context.deployments.get((meta["namespace"], meta["name"]))
    if current and current["metadata"]["uid"] == meta["uid"]:
        await finalizer.remove(context.client, context.deployments, current, own, manager=context.manager)


async def _clean_up(context: Context, live: Object, manager: str | None = None) -> list[str]:
    """Call `finalizer.clean_up` with the clients and stores of the context."""
    return await finalizer.clean_up(
        context.client,
        live,
        context.upstream.kind,
        context.upstream.objects,
        context.helpers,
        manager,
        spared=lambda helper: context.is_of_another(key_of(live), helper),
    )


async def _report_terminating(context: Context, live: Object, message: str) -> None:
    generation = live["metadata"]["generation"]
    status = {
        "phase": "Terminating",
        "message": message,
        "observedGeneration": generation,
        "conditions": [
            conditions.condition(
                reasons.RESOURCE_CREATED, False, "Terminating", message, generation=generation
            ),
            conditions.condition(reasons.READY, False, "Progressing", message, generation=generation),
        ],
    }
    await own_status.write(context, live, status)


async def release_deployment(context: Context, live: Object) -> float | None:
    """Let go of a ModelDeployment for which another provider, or none, is selected (step 6).

    The model keeps serving and being observed until the chosen provider reports that it takes over. Then all objects
    that we created are deleted, even if somebody removed our finalizer or an object was created late. Return the
    seconds until the next reconcile is due, or None.
    """
    key, meta = key_of(live), live["metadata"]
    upstream = context.upstream.objects.get(key) if context.upstream.kind else None
    has_finalizer = finalizer.has(live, context.provider.name)
    serves = bool(
        upstream
        and manifest.is_created_by(upstream, meta["uid"], context.manager, has_finalizer=has_finalizer)
    )
    if serves:
        # Of another provider's ModelDeployment without our finalizer, the store may keep too few fields (`trim`).
        again = await finalizer.restore(context, live)
        current = context.deployments.get(key)
        if current is None or current["metadata"]["uid"] != meta["uid"]:
            return None
        if not finalizer.has(current, context.provider.name):
            current = await context.client.get(MODEL_DEPLOYMENTS, meta["name"], meta["namespace"])
        live = current
        has_our_messages = release.repeats_our_messages(live, context.provider)
        if why := release.obstacle(live, context.manager, has_our_messages=has_our_messages):
            return sooner(again, await _keep(context, live, why))
    elif not LiveModelDeployment(live).provider_name:
        # One provider with a finalizer serves. Our finalizer would hide which one, and a tenant may have added it.
        return await _let_go(context, live, None) if other_holders(live, context.provider.name) else None
    return await _leave(context, live, serves)


async def _leave(context: Context, live: Object, serves: bool) -> float | None:
    """Delete our objects, release all fields, and remove our finalizer. Returns as `release_deployment`."""
    key, successor = key_of(live), LiveModelDeployment(live).provider_name
    objects = removal.state(context, live)
    wait = context.memory(key).removal.left(objects, context.clock()) if key in context.memories else 0.0
    if wait:
        return wait
    keep = partial(_keep, context, live, reason="Terminating", should_report=serves)
    try:
        left = await _clean_up(context, live, context.manager)
    except ApiError as error:
        problem = f"{context.provider.title} could not be removed for provider {successor}"
        return await removal.put_off(context, live, objects, problem, error, keep)
    if left:
        # Once our main object is gone, the chosen provider reports, even if helpers still exist.
        holding = finalizer.holding(context, live)
        return await keep(f"{context.provider.title} is being removed for provider {successor}{holding}")
    await own_status.withdraw(context, live)
    return await _let_go(context, live, successor)


async def _let_go(context: Context, live: Object, successor: str | None) -> float | None:
    """Remove our finalizer, once our objects are deleted. Returns as `release_deployment`."""
    key = key_of(live)
    current = context.deployments.get(key)
    if (
        current is None
        or current["metadata"]["uid"] != live["metadata"]["uid"]
        or not finalizer.has(current, context.provider.name)
    ):
        return None
    objects = removal.state(context, live, "finalizer")
    if wait := context.memory(key).removal.left(objects, context.clock()):
        return wait
    own = names.provider_finalizer(context.provider.name)
    try:
        await finalizer.remove(context.client, context.deployments, current, own, manager=context.manager)
    except ApiError as error:
        reason = f" for provider {successor}" if successor else ""
        problem = f"Finalizer {own} could not be removed{reason}"
        # The chosen provider reports on the model now. Its message names the finalizer (`handover.waiting`).
        return await removal.put_off(context, live, objects, problem, error, None)
    return None


async def _keep(
    context: Context, live: Object, why: str, reason: str = "", *, should_report: bool = True
) -> float | None:
    """Keep reporting on the object that serves.

    If a provider is chosen, it writes its own conditions, so ours are released. `should_report` is False if only the
    chosen provider reports.
    """
    report = Report(live["metadata"]["generation"])
    if LiveModelDeployment(live).provider_name:
        report.stop = Stop(reasons.PROVIDER_SELECTED, reason, why, failed=False)
    else:
        retained.repeat_report(live, report, context.manager)
    due = await observe(context, live, report)
    status = (
        report.status(context.provider)
        if should_report and release.should_report(live, context.manager)
        else {}
    )
    writes = context.memory(key_of(live)).status_writes
    wait = writes.wait(asyncio.get_running_loop().time())
    if wait and pace.can_wait(LiveModelDeployment(live).status, status):
        return sooner(due, wait)
    if await own_status.write(context, live, status):
        writes.take()
    return due
