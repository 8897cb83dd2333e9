"""Names and durations that all checks of a process share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from kubefoundry_conformance.cluster.waiting import SECONDS
from kubefoundry_sdk._runtime.lease import DURATION

MANAGER: Final = "kubefoundry-conformance"
"""Field manager of the kit."""

MARK: Final = "kubefoundry.ai/conformance"
"""Label of objects that the kit creates outside of its namespace. The value is the name of the namespace."""

RESTARTED: Final = SECONDS + 2 * DURATION
"""Longest wait after a kill of a process that held a Lease."""

QUIET: Final = 2.0
"""Seconds during which a forbidden change must not occur."""

TIMEOUT: Final = 6
"""`--finalizer-timeout` and `--heartbeat-timeout` of the subject, in seconds."""

SHORT: Final = {
    "KUBEFOUNDRY_FINALIZER_TIMEOUT": str(TIMEOUT),
    "KUBEFOUNDRY_HEARTBEAT_TIMEOUT": str(TIMEOUT),
}


def now() -> str:
    """Return the current time in the format of the API server."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
