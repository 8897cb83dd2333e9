"""Termination messages (kubelet 1.36: getTerminationMessage of kuberuntime_container.go)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FILE: Final = 4096
LOG: Final = 2048
LINES: Final = 80
"""Longest message in bytes, and longest end of the log in bytes and lines. `status.py` shortens messages again."""


def message(file: Path, log: Path, policy: str, code: int) -> str:
    """Return the termination message. `policy`: terminationMessagePolicy of the container."""
    message = tail(file, FILE) if file.exists() else b""
    if not message and code and policy == "FallbackToLogsOnError":
        message = b"".join(log.read_bytes().splitlines(keepends=True)[-LINES:])[-LOG:]
    return message.decode(errors="replace")


def tail(file: Path, size: int) -> bytes:
    """Return the last bytes of a file."""
    with file.open("rb") as content:
        content.seek(0, 2)
        content.seek(max(0, content.tell() - size))
        return content.read()
