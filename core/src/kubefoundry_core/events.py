"""The Events for core's decisions: one for each transition (contract §4.21)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kubefoundry_core.decision import EXPLICIT
from kubefoundry_sdk._api import reasons
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import Object


@dataclass(frozen=True, slots=True)
class Announcement:
    """An Event about a ModelDeployment."""

    type: Literal["Normal", "Warning"]
    reason: str
    note: str


def announcements(live: Object, decided: Object) -> list[Announcement]:
    """Return the Events for the transitions between two statuses.

    Args:
        live: The status before.
        decided: Core's new fields (`decision.decide`).
    """
    events = []
    for type_ in (reasons.VALIDATED, reasons.PROVIDER_SELECTED, reasons.PROVIDER_HEALTHY):
        now = find(decided["conditions"], type_)
        before = find(live.get("conditions"), type_) or {}
        if now is None or _state(now) == _state(before):
            continue
        if now["status"] == "False":
            events.append(Announcement("Warning", now["reason"], now["message"]))
        elif type_ == reasons.PROVIDER_SELECTED:
            note = f"Selected provider '{decided['provider']['name']}': {EXPLICIT}"
            events.append(Announcement("Normal", "ProviderSelected", note))
        elif type_ == reasons.PROVIDER_HEALTHY:
            events.append(Announcement("Normal", now["reason"], now["message"]))
    return events


def _state(condition: Object) -> tuple[object, ...]:
    """Return the values whose change is a transition."""
    state = (condition.get("status"), condition.get("reason"))
    # The message names the selected provider. Without a selection, it lists the registered providers, which change
    # often.
    if condition.get("type") == reasons.PROVIDER_SELECTED and condition.get("status") == "True":
        return (*state, condition.get("message"))
    return state
