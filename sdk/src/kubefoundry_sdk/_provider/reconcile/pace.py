"""Limits the writes of a status while the upstream's own status does not settle (contract §4.21).

Without the limit, each write of an upstream whose status flaps or is invalid would cause a write and an Event of
ours, and each of our writes causes reconciles in every component.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_sdk._api import conditions, reasons

BURST: Final = 20
"""Writes that are sent without a delay. A creation takes about six, a rollout of several replicas some more."""

EVERY: Final = 6.0
"""Seconds between two writes after that."""


def can_wait(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Check whether the write of a status can wait for a few seconds without misleading anyone.

    It cannot wait if the model stops serving, for a newer generation of the spec, or for a new obstacle.
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
