"""What we said last, where a turn has found out nothing new."""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk.api import conditions, reasons
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.reconcile import release
from kubefoundry_sdk.provider.reconcile.report import Report, Stop

_FOUND_OUT: Final = ((reasons.PROVIDER_COMPATIBLE, "compatible"), (reasons.RESOURCE_CREATED, "created"))
"""Conditions, and where a report has the message of a True one."""


def unvalidated(live: Object, report: Report, manager: str) -> None:
    """Stopped at step 5: what an earlier generation found out stands while its object does.

    Until core has looked at the generation, what stood in its way stands as well: nothing is said of the new one.
    """
    current = (live.get("status") or {}).get("conditions")
    verdict = conditions.find(current, reasons.VALIDATED) or {}
    if verdict.get("observedGeneration") != report.generation:
        as_before(live, report, manager)
        return
    for type_, attribute in _FOUND_OUT:
        before = _said(live, manager, type_)
        if before.get("status") == "True":
            setattr(report, attribute, before["message"])
    if report.compatible:
        report.stop = Stop(reasons.VALIDATED, verdict["reason"], verdict["message"], failed=False)


def as_before(live: Object, report: Report, manager: str) -> None:
    """Nothing new is said: the report is what we said last, of the generation that it was about."""
    before = live.get("status") or {}
    report.compatible = report.created = None
    report.notes = []
    for type_, attribute in _FOUND_OUT:
        said = _said(live, manager, type_)
        if said.get("status") == "True":
            setattr(report, attribute, said["message"])
        elif said.get("status") == "False":
            failed = before.get("phase") == "Failed"
            report.stop = Stop(type_, said["reason"], said["message"], failed=failed)
    report.override_warning = _said(live, manager, reasons.OVERRIDES_VALID).get("message")
    report.generation = before.get("observedGeneration", report.generation)


def _said(live: Object, manager: str, type_: str) -> conditions.Condition:
    """Our condition of that type, {} where there is none.

    That of the provider before is not for us to repeat: it would have us take over what we have not looked at.
    """
    if not release.says(live, manager, type_):
        return {}
    return conditions.find((live.get("status") or {}).get("conditions"), type_) or {}
