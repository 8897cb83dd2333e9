"""Warnings about annotations of a ModelDeployment that have no effect (contract §7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubefoundry_core.admission.review import Request
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object

SHOWN: Final = 40
"""The most characters of a key or value that a warning quotes."""

MOST: Final = 10
"""The most warnings about annotations: an object may have thousands."""

_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    names.PAUSED_ANNOTATION: ("true",),
    names.DRY_RUN_ANNOTATION: ("true",),
    names.VERIFY_ENDPOINT_ANNOTATION: ("true", "answer"),
}
"""The values with an effect. As everywhere in Kubernetes, they are compared as text."""

_OFF: Final = ("", "false")
"""Values that turn an annotation off on purpose, so they cause no warning."""

_ANY_VALUE: Final = (names.REFRESH_ANNOTATION, names.RESELECT_ANNOTATION)
_OURS: Final = (
    names.DRY_RUN_RESULT_ANNOTATION,
    names.CREATOR_ANNOTATION,
    names.CREATOR_GROUPS_ANNOTATION,
)


def warnings(request: Request) -> list[str]:
    """Return a line for each annotation under our prefix that this request sets and that has no effect."""
    before = _annotations(request.old)
    lines = []
    for key, value in sorted(_annotations(request.object).items()):
        if before.get(key) != value and (line := _warning(key, value)):
            lines.append(line)
    return lines[:MOST]


def _warning(key: str, value: str) -> str | None:
    if key in _VALUES:
        if value in _VALUES[key] or value in _OFF:
            return None
        effective = " or ".join(f'"{text}"' for text in _VALUES[key])
        return f'annotation {key}: "{value[:SHOWN]}" has no effect: set it to {effective}'
    if key in (*_ANY_VALUE, *_OURS) or not key.startswith(names.PREFIX):
        return None
    known = ", ".join((*_VALUES, *_ANY_VALUE))
    return f"annotation {key[:SHOWN]} is unknown and has no effect; known annotations: {known}"


def _annotations(obj: Object | None) -> dict[str, str]:
    return dict(_texts((obj or {}).get("metadata")))


def _texts(meta: Any) -> Iterator[tuple[str, str]]:
    annotations = meta.get("annotations") if isinstance(meta, dict) else None
    for key, value in annotations.items() if isinstance(annotations, dict) else ():
        if isinstance(value, str):
            yield key, value
