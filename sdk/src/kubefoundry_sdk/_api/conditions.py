"""Conditions, created and merged so that `lastTransitionTime` changes only with `status` (contract §3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

from kubefoundry_sdk._api.reasons import REASONS

Condition = dict[str, Any]
ConditionStatus = Literal["True", "False", "Unknown"]

MAX_MESSAGE = 32768
"""Longest message that a Kubernetes condition may carry (metav1.Condition)."""


_UNSEEN: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that control a terminal or the direction of text, and halves of surrogate pairs. Text from tenants and
servers may contain them. A terminal would act on the former, and JSON in UTF-8 cannot contain the latter."""


def condition(
    type_: str, status: ConditionStatus | bool, reason: str, message: str, *, generation: int
) -> Condition:
    """Return a condition without its transition time, which `stamp` adds.

    Raises:
        ValueError: The reason is not in the closed list of its type.
    """
    if type_ in REASONS and reason not in REASONS[type_]:
        raise ValueError(
            f"{reason} is not a reason of condition {type_}: {', '.join(sorted(REASONS[type_]))}"
        )
    text = {True: "True", False: "False"}.get(status, status) if isinstance(status, bool) else status
    return {
        "type": type_,
        "status": text,
        "reason": reason,
        "message": clip(message),
        "observedGeneration": generation,
    }


def clip(message: str, limit: int = MAX_MESSAGE) -> str:
    r"""Return a message of at most `limit` characters, without invisible characters.

    Control characters but tabs and new lines are written as escapes (`\x1b`). A message that is too long loses its
    middle, because it begins with what happened and ends with what to do.
    """
    message = _UNSEEN.sub(lambda match: ascii(match.group())[1:-1], message)
    if len(message) <= limit:
        return message
    first = limit // 2
    return f"{message[:first]} … {message[len(message) - (limit - first - 3) :]}"


def first_of(items: Sequence[str], most: int = 5) -> str:
    """Return at most so many items for a message: `a, b and 3 more`."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return f"{', '.join(items[:most])}{more}"


def without_time(current: Condition | None) -> Condition | None:
    """Return the condition without its transition time, to be written again."""
    return {key: value for key, value in current.items() if key != "lastTransitionTime"} if current else None


def find(conditions: Iterable[Mapping[str, Any]] | None, type_: str) -> Condition | None:
    """Return the condition of that type, or None."""
    for item in conditions or ():
        if item.get("type") == type_:
            return dict(item)
    return None


def is_true(
    conditions: Iterable[Mapping[str, Any]] | None, type_: str, *, generation: int | None = None
) -> bool:
    """Check whether the condition is True, for `generation` if one is given."""
    condition = find(conditions, type_)
    if condition is None or condition.get("status") != "True":
        return False
    return generation is None or condition.get("observedGeneration") == generation


def stamp(
    conditions: Iterable[Condition], live: Iterable[Mapping[str, Any]] | None, now: datetime
) -> list[Condition]:
    """Return the conditions with transition times: the live time if the status is the same, else `now`.

    A condition without a status gets no time: both are another manager's.
    """
    live_by_type = {item.get("type"): item for item in live or ()}
    stamped = []
    for item in conditions:
        if "status" not in item:
            stamped.append(item)
            continue
        before = live_by_type.get(item["type"])
        same = before is not None and before.get("status") == item["status"]
        time = (
            before["lastTransitionTime"]
            if same and before and before.get("lastTransitionTime")
            else rfc3339(now)
        )
        stamped.append({**item, "lastTransitionTime": time})
    return stamped


def rfc3339(moment: datetime) -> str:
    """Return the time as metav1.Time writes it: whole seconds and `Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
