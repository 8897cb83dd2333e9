"""Reads a status that an upstream operator wrote, without trusting it: a value of the wrong type counts as absent."""

from __future__ import annotations

from typing import NamedTuple

from kubefoundry_sdk._api.fields import MAX_INT32
from kubefoundry_sdk._api.untrusted import mapping, mappings


class UpstreamCondition(NamedTuple):
    """A condition as the upstream wrote it. A value that is not a string becomes empty.

    Attributes:
        type: Its type.
        status: Its status.
        reason: Its reason.
        message: Its message.
        since: The time of its last transition, in Kubernetes' format.
        generation: Its `observedGeneration`; 0 if it has none.
    """

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    since: str = ""
    generation: int = 0

    def words(self) -> str:
        """Return type, status, reason and message on one line."""
        status = f"is {self.status}" if self.status else "has no status"
        sentence = f"{self.type} {status}" + (f" ({self.reason})" if self.reason else "")
        return f"{sentence}: {self.message}" if self.message else sentence


def upstream_conditions(status: object) -> dict[str, UpstreamCondition]:
    """Return the readable conditions of a status (or of any mapping with `conditions`), by type.

    A condition that occurs several times with different statuses is Unknown, and its message quotes the first two.
    """
    conditions: dict[str, UpstreamCondition] = {}
    contradicted: set[str] = set()
    for item in mappings(mapping(status).get("conditions")):
        # Quote only two: more would take quadratic time and make the message too long.
        if not isinstance(item.get("type"), str) or item["type"] in contradicted:
            continue
        condition = UpstreamCondition(
            item["type"],
            text(item.get("status")),
            text(item.get("reason")),
            text(item.get("message")),
            text(item.get("lastTransitionTime")),
            count(item.get("observedGeneration")) or 0,
        )
        other = conditions.get(condition.type, condition)
        conditions[condition.type] = condition
        if other.status != condition.status:
            conditions[condition.type] = _contradiction(other, condition)
            contradicted.add(condition.type)
    return conditions


def _contradiction(first: UpstreamCondition, second: UpstreamCondition) -> UpstreamCondition:
    both = " and ".join(sorted((first.words(), second.words())))
    return UpstreamCondition(first.type, "Unknown", "Contradiction", f"the status reports both that {both}")


def outdated(stated: object, generation: object) -> str:
    """Return how the generation that a status names differs from the object's, as the end of a sentence.

    Args:
        stated: `observedGeneration` of the status, of any type; None if the status has none.
        generation: The generation of the object.
    """
    if stated is None:
        return "has not reported on the newest generation yet"
    number = count(stated)
    if number is None:
        return "names a generation that is not a valid number"
    if isinstance(generation, int) and number > generation:
        return f"names generation {number}, but the newest is {generation}"
    return "has not seen the newest generation yet"


def text(value: object) -> str:
    """Return the value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """Return the value if it is a valid count (0 to 2147483647), else None."""
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INT32
    return value if fits and isinstance(value, int) else None
