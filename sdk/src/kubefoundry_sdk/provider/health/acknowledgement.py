"""Whether the upstream operator has acknowledged the last apply. Until then `Ready` describes the previous
generation.

An operator that has not looked at an edit yet reports that the old spec serves. That is true, but misleads anyone who
waits for the new one (`kubectl wait` compares the condition's observedGeneration with the object's).
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
    """Seconds until the live object is what serves: 0 if it already does, `NOT_YET` until the operator has
    acknowledged it, and while an earlier spec serves because an update is in progress or failed.

    settling: the wait of this object.
    settles: seconds after the acknowledgement during which the status may still show the previous state.
    now: monotonic seconds.
    """
    if seen.updating or seen.update_failed or not acknowledged(live, serving=True):
        return NOT_YET
    meta = live["metadata"]
    return max(0.0, settling.left([meta["uid"], str(meta["generation"])], settles, now))


def generation_reported(status: Mapping[str, Any], generation: int) -> int:
    """The newest generation that a ModelDeployment's status reports on; `generation` if the status names none."""
    ready = conditions.find(status.get("conditions"), reasons.READY) or {}
    reported = [status.get("observedGeneration"), ready.get("observedGeneration")]
    known = [number for number in reported if isinstance(number, int)]
    return min(generation, *known) if known else generation
