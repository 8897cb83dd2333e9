"""Bounds how often one status is written while the upstream's own status does not settle (contract §4.21).

An upstream whose status flaps, or that writes nonsense, would otherwise cause a write and an Event of ours for each
write of its own, and each of ours wakes every component.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_sdk.api import conditions, reasons

BURST: Final = 20
"""Writes that are sent at once: a creation takes about six, a rollout of several replicas some more."""

EVERY: Final = 6.0
"""Seconds after which one more is sent."""


def can_wait(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Check whether nobody is misled while a status stays as it is for a few seconds.

    A model that stops serving is reported at once, and so is a newer generation of the spec, or another obstacle.

    Args:
        before: The status of the ModelDeployment.
        after: The one to write.
    """
    old, new = before.get("conditions"), after.get("conditions")
    stops = conditions.is_true(old, reasons.READY) and not conditions.is_true(new, reasons.READY)
    return (
        "phase" in after and not stops and _newest(new) <= _newest(old) and _obstacles(new) <= _obstacles(old)
    )


def _obstacles(items: Any) -> set[tuple[str, str]]:
    """Return type and reason of the conditions that are False, apart from `Ready`."""
    return {
        (str(item.get("type")), str(item.get("reason")))
        for item in items or ()
        if item.get("status") == "False" and item.get("type") != reasons.READY
    }


def _newest(items: Any) -> int:
    """Return the newest generation that one of the conditions names."""
    return max((int(item.get("observedGeneration") or 0) for item in items or ()), default=0)
