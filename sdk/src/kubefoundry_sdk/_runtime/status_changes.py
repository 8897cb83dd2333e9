"""What a write to a status changes, in a few words for the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_sdk._api.conditions import clip

WORDS: Final = 500
"""Characters of a condition's message that the log shows."""


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new phase, provider and conditions, each only if it changed.

    A condition has changed if its status or reason has. Its message alone may change with each pod that starts.

    Args:
        before: The status before the write.
        after: The status as stored.
    """
    provider = _name(after)
    conditions, earlier = _conditions(after), _conditions(before)
    changed = {
        type_: _words(item)
        for type_, item in conditions.items()
        if _outcome(item) != _outcome(earlier.get(type_, {}))
    }
    removed = dict.fromkeys(earlier.keys() - conditions.keys(), "removed")
    return {
        **({"phase": after["phase"]} if after.get("phase") not in (None, before.get("phase")) else {}),
        **({"provider": provider} if provider not in (None, _name(before)) else {}),
        **({"conditions": changed | removed} if changed or removed else {}),
    }


def _name(status: Mapping[str, Any]) -> Any:
    return (status.get("provider") or {}).get("name")


def _conditions(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {str(item.get("type")): item for item in status.get("conditions") or ()}


def _outcome(condition: Mapping[str, Any]) -> tuple[Any, Any]:
    return condition.get("status"), condition.get("reason")


def _words(condition: Mapping[str, Any]) -> str:
    words = f"{condition.get('status')} {condition.get('reason')}"
    message = clip(str(condition.get("message") or ""), WORDS)
    return f"{words}: {message}" if message else words
