"""Objects that cannot be read are skipped, named and counted: an object's content harms only that object."""

from __future__ import annotations

import logging
import traceback
from typing import Any, Final

from prometheus_client import Counter

from kubefoundry_sdk._cluster import logs

log = logging.getLogger(__name__)

SKIPPED: Final = Counter(
    "kubefoundry_skipped_objects",
    "Objects of a list or a watch that could not be read and were skipped, by kind.",
    ["kind"],
)


def skipped(obj: Any, error: Exception) -> None:
    """Log and count an object that cannot be read. Call it while handling `error`.

    If an earlier state of the object is known, that state stays.
    """
    fields = obj if isinstance(obj, dict) else {}
    meta = fields.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    kind = str(fields.get("kind") or "object")[:63]
    SKIPPED.labels(kind).inc()
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    log.error(
        "an object cannot be read and is skipped, correct or delete it",
        extra=logs.values(
            kind=kind,
            namespace=str(meta.get("namespace") or "")[:63],
            name=str(meta.get("name"))[:253],
            error=f"{type(error).__name__}: {str(error)[:500]}",
            line=", ".join(f"{frame.filename}:{frame.lineno}" for frame in frames),
        ),
    )
