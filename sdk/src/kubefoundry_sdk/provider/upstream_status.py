"""A status that an upstream operator wrote, read without trust: what is of another type counts as absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kubefoundry_sdk.api.fields import MAX_INT32


class UpstreamCondition(NamedTuple):
    """A condition in the upstream's own words; what is no text is the empty one.

    since: when its status became what it is, as Kubernetes writes times.
    """

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    since: str = ""

    def words(self) -> str:
        """Type, status, reason and message on one line."""
        said = f"{self.type} is {self.status}" + (f" ({self.reason})" if self.reason else "")
        return f"{said}: {self.message}" if self.message else said


def upstream_conditions(status: object) -> dict[str, UpstreamCondition]:
    """By type, those of a status (or of any mapping with `conditions`) that can be read."""
    listed = mapping(status).get("conditions")
    return {
        item["type"]: UpstreamCondition(
            *(text(item.get(name)) for name in ("type", "status", "reason", "message", "lastTransitionTime"))
        )
        for item in (listed if isinstance(listed, list) else ())
        if isinstance(item, Mapping) and isinstance(item.get("type"), str)
    }


def mapping(value: object) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def text(value: object) -> str:
    """The value where it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """The value where it is a number that a count can be (0 to 2147483647), else None."""
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INT32
    return value if fits and isinstance(value, int) else None
