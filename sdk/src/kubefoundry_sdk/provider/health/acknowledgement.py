"""Whether the upstream operator has taken up what was applied last: until then `Ready` stands for what was before.

An operator that has not looked at an edit yet says of the old spec that it serves. That is true, and no answer to
whoever waits for the new one (`kubectl wait` compares the condition's observedGeneration with the object's).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_sdk.api import conditions, reasons
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.contract import Observation
from kubefoundry_sdk.provider.health.staleness import acknowledged
from kubefoundry_sdk.runtime.wait import Wait

NOT_YET: Final = float("inf")


def left(settling: Wait, live: Object, seen: Observation, settles: float, now: float) -> float:
    """Seconds until what serves is the object as it is now: 0 when it is, `NOT_YET` until the operator has
    acknowledged it, and while an earlier spec serves because an update goes on or has failed.

    settling: of this object. settles: how long after that the status may still show what was before. now: monotonic
    seconds.
    """
    if seen.updating or seen.update_failed or not acknowledged(live, serving=True):
        return NOT_YET
    meta = live["metadata"]
    return max(0.0, settling.left([meta["uid"], str(meta["generation"])], settles, now))


def generation_told(status: Mapping[str, Any], generation: int) -> int:
    """The newest generation that a ModelDeployment's status calls looked at; that one where it tells none."""
    ready = conditions.find(status.get("conditions"), reasons.READY) or {}
    told = [status.get("observedGeneration"), ready.get("observedGeneration")]
    known = [number for number in told if isinstance(number, int)]
    return min(generation, *known) if known else generation
