"""Whether the upstream operator still answers: `StaleStatus` (contract §3).

Stale is a status that for five minutes is absent, speaks of an older generation, or is that of an operator that is
seen to be down. A model that takes long to load and an idle healthy one are neither: their operator has acknowledged
what is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.runtime.wait import Wait

THRESHOLD: Final = 300.0
"""Seconds (contract §3)."""


def acknowledged(live: Object, *, serving: bool = False) -> bool:
    """Whether the upstream's status speaks of the object as it is now, as far as it tells.

    Read from `status.observedGeneration`, else from the conditions', else from there being a status at all.

    serving: where it serves, generations of conditions prove nothing: an operator may leave a condition as it is
        while nothing of it changes (KAITO's UpdateStatusConditionIfNotMatch, `pkg/utils/workspace`).
    """
    status: dict[str, Any] = live.get("status") or {}
    if not status:
        return False
    seen = status.get("observedGeneration")
    if seen is None and not serving:
        told = [
            item.get("observedGeneration")
            for item in status.get("conditions") or ()
            if isinstance(item, dict)
        ]
        known = [number for number in told if isinstance(number, int)]
        seen = max(known, default=None)
    return not isinstance(seen, int) or seen >= live["metadata"]["generation"]


def message(live: Object, threshold: float, down: str | None = None) -> str:
    """The one line for the user. down: what shows that the operator is down."""
    meta = live["metadata"]
    if down:
        return (
            f"{live['kind']} '{meta['name']}' has a status that nobody has kept up to date for more than "
            f"{threshold / 60:g} minutes: {down}"
        )
    said = (
        "has no status"
        if not live.get("status")
        else f"has a status older than generation {meta['generation']}"
    )
    return (
        f"{live['kind']} '{meta['name']}' {said} for more than {threshold / 60:g} minutes; "
        "check that its operator runs"
    )


@dataclass(frozen=True, slots=True)
class Verdict:
    """message: of a True `StaleStatus`, None where it is not stale. again: seconds until it may be, else None."""

    message: str | None = None
    again: float | None = None


def judge(
    silence: Wait, live: Object, *, phase: str, stood: bool, down: str | None, threshold: float, now: float
) -> Verdict:
    """Whether the status of an upstream object is stale.

    silence: of this object.
    phase: what was observed; an upstream that says what is wrong is not silent, whatever generation it says it of.
    stood: whether `StaleStatus` stands already: a provider that has just started does not take it back for the time
        that it needs to see for itself.
    down: what shows that the operator is down, None where nothing does. now: monotonic seconds.
    threshold: seconds after which a silence makes the status stale.
    """
    answered = phase == "Failed" or acknowledged(live, serving=phase == "Running")
    if answered and not down:
        silence.over()
        return Verdict()
    meta = live["metadata"]
    left = silence.left([meta["uid"], str(meta["generation"])], threshold, now)
    if left > 0 and not stood:
        return Verdict(again=left)
    return Verdict(message(live, threshold, down))
