"""Who asked the API server for what: the control plane's audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def requests_by_user(audit_log: Path, start: int = 0) -> Iterator[dict[str, Any]]:
    """The audit log's entries that begin at the byte `start` or later.

    A size taken while the API server writes a line may lie within it: that line had begun before.
    """
    with audit_log.open("rb") as log:
        if start:
            log.seek(start - 1)
            log.readline()
        for line in log:
            if line.endswith(b"\n"):
                yield json.loads(line)
