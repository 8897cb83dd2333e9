"""Repeats our last report if a reconcile has no new result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubefoundry_sdk._api import conditions, reasons
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.reconcile import finalizer, handover, release
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.report import Report, Stop
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._runtime.refusals import PendingRefusal
from kubefoundry_sdk._runtime.store import key_of

_REPORTED: Final = ((reasons.PROVIDER_COMPATIBLE, "compatible"), (reasons.RESOURCE_CREATED, "created"))
"""Condition types, each with the report's field for the message of a True condition."""


def lost_statements(context: Context, live: Object) -> dict[str, str]:
    """Return the messages of our conditions that the status has lost, because somebody emptied it.

    While our object exists, this provider has accepted a spec and created the object. The keys are the
    report's fields, as in `_REPORTED`. If one condition is False, it explains why the other is missing, so the result
    is empty.
    """
    current = {attribute: _own_condition(live, context.manager, type_) for type_, attribute in _REPORTED}
    has_obstacle = any(item.get("status") == "False" for item in current.values())
    if has_obstacle or all(current.values()) or not has_object(context, live):
        return {}
    messages = {
        "compatible": release.compatible_message(context.provider),
        "created": release.created_message(context.provider, live["metadata"]["name"]),
    }
    return {attribute: messages[attribute] for attribute, item in current.items() if not item}


def has_object(context: Context, live: Object) -> bool:
    """Check whether an upstream object exists that we created for the ModelDeployment."""
    upstream = context.upstream.objects.get(key_of(live))
    has_finalizer = finalizer.has(live, context.provider.name)
    return upstream is not None and manifest.is_created_by(
        upstream, live["metadata"]["uid"], context.manager, has_finalizer=has_finalizer
    )


def report_unvalidated(
    live: Object, report: Report, manager: str, lost: Mapping[str, str] | None = None
) -> None:
    """Repeat the report of an earlier generation while its object exists, because this generation is not validated.

    Until core has a verdict on this generation, an earlier obstacle is repeated, too, and nothing is reported about
    the new generation.

    Args:
        live: The ModelDeployment.
        report: The report.
        manager: Our field manager.
        lost: The messages of `lost_statements`.
    """
    verdict = LiveModelDeployment(live).condition(reasons.VALIDATED) or {}
    if verdict.get("observedGeneration") != report.generation:
        repeat_report(live, report, manager)
        return
    for type_, attribute in _REPORTED:
        before = _own_condition(live, manager, type_)
        if before.get("status") == "True":
            setattr(report, attribute, before["message"])
        elif lost and attribute in lost:
            setattr(report, attribute, lost[attribute])
    if report.compatible:
        report.stop = Stop(reasons.VALIDATED, verdict["reason"], verdict["message"], failed=False)


def repeat_report(live: Object, report: Report, manager: str) -> None:
    """Repeat the last report, for the generation that it was about, because there is nothing new to report."""
    before = LiveModelDeployment(live).status
    report.compatible = report.created = None
    report.is_repeated = True
    report.notes = []
    for type_, attribute in _REPORTED:
        condition = _own_condition(live, manager, type_)
        if condition.get("status") == "True":
            setattr(report, attribute, condition["message"])
        elif condition.get("status") == "False":
            failed = before.get("phase") == "Failed"
            report.stop = Stop(type_, condition["reason"], condition["message"], failed=failed)
    report.override_warning = _own_condition(live, manager, reasons.OVERRIDES_VALID).get("message")
    report.generation = before.get("observedGeneration", report.generation)
    if handover.is_reported_by_other(live, manager):
        # `status.observedGeneration` is the other provider's, which may be ahead of us. Our acceptance must keep the
        # generation that we checked.
        stated = [_own_condition(live, manager, type_).get("observedGeneration") for type_, _ in _REPORTED]
        generations = [number for number in stated if isinstance(number, int)]
        report.generation = min(generations, default=report.generation)


def _own_condition(live: Object, manager: str, type_: str) -> conditions.Condition:
    """Return our condition of that type, {} if there is none.

    Never repeat the condition of a previous provider: it would accept a deployment that we have not checked.
    """
    if not release.owns_condition(live, manager, type_):
        return {}
    return LiveModelDeployment(live).condition(type_) or {}


def refused(context: Context, live: Object, report: Report, refusal: PendingRefusal) -> float:
    """Report a refusal of the plan. Return the seconds until its retry.

    A refusal that may pass says nothing about the spec. It is reported from the second time on, as a write that is
    retried.
    """
    if not refusal.is_transient:
        report.stop = Stop(reasons.RESOURCE_CREATED, "ApplyRejected", refusal.text, failed=True)
    elif context.memory(key_of(live)).refusal.repeated:
        report.stop = Stop(reasons.RESOURCE_CREATED, "ApplyFailed", refusal.text, failed=False)
    else:
        repeat_report(live, report, context.manager)
    return refusal.left
