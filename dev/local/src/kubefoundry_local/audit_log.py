"""Requests to the API server by user, read from the audit log of the control plane."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def requests_by_user(audit_log: Path, start: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the entries of the audit log that begin at the byte `start` or later.

    A file size that was read during a write may point into the middle of a line. That line began earlier and is
    omitted, as is a last line without its end.
    """
    for _, entry in _entries(audit_log, start):
        yield entry


def _entries(audit_log: Path, start: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the entries of `requests_by_user`, each with the start of the next one."""
    with audit_log.open("rb") as log:
        if start:
            log.seek(start - 1)
            if not log.readline().endswith(b"\n"):
                return
        # An incomplete line is the last one. Another read would return its rest as a separate line.
        while (line := log.readline()).endswith(b"\n"):
            yield log.tell(), json.loads(line)


@dataclass(slots=True)
class FinishedRequests:
    """Finished requests of a user, for repeated reads. Each line of the log is parsed only once."""

    audit_log: Path
    user: str
    _position: int = field(default=0, init=False)
    _entries: list[dict[str, Any]] = field(default_factory=list, init=False)

    def until_now(self) -> list[dict[str, Any]]:
        """Return all finished requests so far, oldest first."""
        for position, entry in _entries(self.audit_log, self._position):
            self._position = position
            if entry["stage"] == "ResponseComplete" and entry["user"]["username"] == self.user:
                self._entries.append(entry)
        return list(self._entries)
