"""Log lines as text or JSON (`--log-format`), one line for each event, on stderr."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, Literal

MESSAGE: Final = 4096
EXCEPTION: Final = 16384
"""Characters that are written of a line's message and of its traceback, cut in the middle: both may repeat what a
user wrote, or every level of a deep recursion."""

SHOWN: Final = 300
"""Characters of an exception's text that a message shows."""


def described(error: Exception) -> str:
    """Return the exception as one bounded line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:SHOWN]}{'…' if len(text) > SHOWN else ''}"


def bounded(text: str, most: int) -> str:
    """Return the text with its middle left out if it is longer than `most`."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters left out … {text[-half:]}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": bounded(record.getMessage(), MESSAGE),
        }
        if record.exc_info:
            line["exception"] = bounded(self.formatException(record.exc_info), EXCEPTION)
        return json.dumps(line, ensure_ascii=False)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname:<7} {bounded(record.getMessage(), MESSAGE)}"
        if not record.exc_info:
            return line
        return f"{line}\n{bounded(self.formatException(record.exc_info), EXCEPTION)}"


def set_up(log_format: Literal["text", "json"]) -> None:
    """Configure the process's logging."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if log_format == "json" else _Text())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)


def _time(record: logging.LogRecord) -> str:
    return (
        datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
