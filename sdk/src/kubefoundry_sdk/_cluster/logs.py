"""Log lines as text or JSON (`--log-format`), one line for each event, on stderr.

A line that is written while a queue reconciles an object names that object, so one filter shows its story.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, Literal

MESSAGE: Final = 4096
EXCEPTION: Final = 16384
"""Characters that are written of a line's message and of its traceback, cut in the middle: both may repeat what a
user wrote, or every level of a deep recursion."""

SHOWN: Final = 300
"""Characters of an exception's text that a message shows."""

LEVELS: Final = ("debug", "info", "warning", "error")
"""Levels of log lines (`--log-level`), the least first."""

VALUES: Final = "values"
"""Attribute of a record with the values beside its constant message."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_object: ContextVar[dict[str, Any] | None] = ContextVar("object", default=None)
"""The object that is being reconciled: namespace, name, kind, generation and uid."""

_UNWRITTEN: Final = frozenset({"uid"})
"""What no line shows of the object."""


@contextmanager
def about(namespace: str, name: str) -> Iterator[None]:
    """Name the object in each line that is written within the context. `read` adds its kind and generation."""
    token = _object.set({"namespace": namespace, "name": name})
    try:
        yield
    finally:
        _object.reset(token)


def read(obj: Mapping[str, Any]) -> None:
    """Add kind, generation and uid of the object to the context of `about`, once the object has been read."""
    if (context := _object.get()) is not None:
        context["kind"] = obj.get("kind")
        context["generation"] = obj["metadata"].get("generation")
        context["uid"] = obj["metadata"].get("uid")


def current() -> Mapping[str, Any]:
    """Return what is known about the object of the context, empty outside of one."""
    return _object.get() or {}


def values(**by_name: Any) -> dict[str, dict[str, Any]]:
    """Return the `extra` of a log call: values by name, beside a message that is constant."""
    return {VALUES: by_name}


class Limit(logging.Filter):
    """Lets at most `most` lines of a logger pass in a second, because strangers can cause them."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._second = 0
        self._count = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is written. The last one of a second says that more are left out."""
        if int(record.created) != self._second:
            self._second, self._count = int(record.created), 0
        self._count += 1
        if self._count == self._most:
            record.msg, record.args = "more lines of this kind in this second are not logged", None
            setattr(record, VALUES, {})
        return self._count <= self._most


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
            **_known(),
        }
        line |= {name: value for name, value in _values(record).items() if name not in line}
        if record.exc_info:
            line["exception"] = bounded(self.formatException(record.exc_info), EXCEPTION)
        return _one_line(json.dumps(line, ensure_ascii=False, default=str))


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        known = _known()
        place = f"{known.get('namespace', '')}/{known['name']}: ".lstrip("/") if known else ""
        message = bounded(record.getMessage(), MESSAGE).removeprefix(place)
        shown = "".join(f" {name}={_word(value)}" for name, value in _values(record).items())
        line = _one_line(f"{_time(record)} {record.levelname:<7} {place}{message}{shown}")
        if not record.exc_info:
            return line
        # Indented, so that no line of an exception's text looks like a line of the log.
        exception = bounded(self.formatException(record.exc_info), EXCEPTION)
        return "\n  ".join([line, *map(_one_line, exception.split("\n"))])


def _known() -> dict[str, Any]:
    """Return what is known about the object of the context, each text bounded: a stranger may have written it."""
    known = {name: value for name, value in current().items() if value and name not in _UNWRITTEN}
    return {
        name: bounded(value, SHOWN) if isinstance(value, str) else value
        for name, value in known.items()
        if isinstance(value, str | int)
    }


def _values(record: logging.LogRecord) -> dict[str, Any]:
    """Return the values of a line, each bounded. One that is too long is shown as a part of its JSON."""
    given: Mapping[str, Any] = getattr(record, VALUES, {})
    return {name: _bounded_value(value) for name, value in given.items()}


def _bounded_value(value: Any) -> Any:
    if isinstance(value, str):
        return bounded(value, MESSAGE)
    text = json.dumps(value, ensure_ascii=False, default=str)
    return bounded(text, MESSAGE) if len(text) > MESSAGE else value


def _word(value: Any) -> str:
    """Return a value as a word of a line of text, quoted if it is more than one."""
    if isinstance(value, str) and value and not any(char.isspace() or char in '"=' for char in value):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _one_line(text: str) -> str:
    """Return the text with control characters and line separators as escapes, so that it is one line everywhere."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def set_up(log_format: Literal["text", "json"], level: str) -> None:
    """Configure the process's logging, and write the lines of this level in LEVELS and of those after it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if log_format == "json" else _Text())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)


def _time(record: logging.LogRecord) -> str:
    return (
        datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
