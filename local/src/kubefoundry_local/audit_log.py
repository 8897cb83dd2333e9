"""Which user sent which requests to the API server, from the control plane's audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def requests_by_user(audit_log: Path, start: int = 0) -> Iterator[dict[str, Any]]:
    """The audit log's entries that begin at the byte `start` or later.

    A size taken while the API server writes a line may be in the middle of it; that line began earlier and is left
    out. So is the last line while it is being written.
    """
    for _, entry in _entries(audit_log, start):
        yield entry


def _entries(audit_log: Path, start: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Those of `requests_by_user`, each with the byte at which the next one begins."""
    with audit_log.open("rb") as log:
        if start:
            log.seek(start - 1)
            if not log.readline().endswith(b"\n"):
                return
        # A line without its end is the last. Read on, its rest would be a line of its own, once it is written.
        while (line := log.readline()).endswith(b"\n"):
            yield log.tell(), json.loads(line)


@dataclass(slots=True)
class FinishedRequests:
    """Those of one user, for a reader that looks again and again: a log of minutes is parsed once, not each time."""

    audit_log: Path
    user: str
    _position: int = field(default=0, init=False)
    _found: list[dict[str, Any]] = field(default_factory=list, init=False)

    def until_now(self) -> list[dict[str, Any]]:
        """All that the log has by now, oldest first."""
        for position, entry in _entries(self.audit_log, self._position):
            self._position = position
            if entry["stage"] == "ResponseComplete" and entry["user"]["username"] == self.user:
                self._found.append(entry)
        return list(self._found)
