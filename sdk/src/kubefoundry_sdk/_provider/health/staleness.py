"""Checks whether the upstream operator still responds: `StaleStatus` (contract §3).

A status is stale if for five minutes it is missing, describes an older generation, or belongs to an operator that is
known to be down. A model that loads slowly or is idle is not stale, because its operator has acknowledged the current
generation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import mapping, mappings
from kubefoundry_sdk._provider.health.acknowledgement import is_generation
from kubefoundry_sdk._runtime.wait import Wait

THRESHOLD: Final = 300.0
"""Seconds (contract §3)."""


def acknowledged(live: Object, *, serving: bool = False, names_generation: bool = False) -> bool:
    """Check whether the upstream's status describes the object as it is now.

    It does if `status.observedGeneration` or a condition names the object's generation. (On the 1.5 line of Dynamo,
    a failure updates only the generation of the condition.) If the status names no generation and does not have to,
    any status counts. A generation that is not the object's, or is not a number, does not count.

    Args:
        live: The upstream object.
        serving: Whether the model serves. Then an old generation in a condition proves nothing, because an operator
            may not write a condition that does not change (KAITO's UpdateStatusConditionIfNotMatch,
            `pkg/utils/workspace`).
        names_generation: Whether the status has to name a generation. True if the operator always writes it
            (`Upstream.names_generation`) and the newest generation is not known to serve.
    """
    status = mapping(live.get("status"))
    if not status:
        return False
    must_be_named = names_generation or "observedGeneration" in status
    reported = [item.get("observedGeneration") for item in mappings(status.get("conditions"))]
    named = [number for number in (status.get("observedGeneration"), *reported) if number is not None]
    if not must_be_named and (serving or not named):
        return True
    return any(is_generation(number, live["metadata"]["generation"]) for number in named)


def message(live: Object, threshold: float, down: str | None = None) -> str:
    """Return the message for the user, one line. `down` is the evidence that the operator is down."""
    meta = live["metadata"]
    if down:
        return (
            f"{live['kind']} '{meta['name']}' has a status that nobody has kept up to date for more than "
            f"{threshold / 60:g} minutes: {down}"
        )
    missing = (
        "has no status" if not live.get("status") else f"has had no status of generation {meta['generation']}"
    )
    return (
        f"{live['kind']} '{meta['name']}' {missing} for more than {threshold / 60:g} minutes; "
        "check that its operator runs"
    )


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of `judge`.

    Attributes:
        message: The message of a True `StaleStatus`; None if the status is not stale.
        retry: Seconds until it may become stale, else None.
    """

    message: str | None = None
    retry: float | None = None


def judge(
    wait: Wait,
    live: Object,
    *,
    phase: str,
    was_stale: bool,
    down: str | None,
    threshold: float,
    now: float,
    names_generation: bool = False,
) -> Verdict:
    """Judge whether the status of an upstream object is stale: silent for `threshold` seconds.

    An upstream that reports an error is not silent, even if the error is about another generation. `was_stale`:
    whether `StaleStatus` is already True. It then stays True until the operator responds, also after a restart of the
    provider. `down` is the evidence that the operator is down, or None. `now` is in monotonic seconds.
    """
    is_responding = phase == "Failed" or acknowledged(
        live, serving=phase == "Running", names_generation=names_generation
    )
    if is_responding and not down:
        wait.reset()
        return Verdict()
    meta = live["metadata"]
    left = wait.left([meta["uid"], str(meta["generation"])], threshold, now)
    if left > 0 and not was_stale:
        return Verdict(retry=left)
    return Verdict(message(live, threshold, down))
