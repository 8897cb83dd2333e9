"""Decides whether the API server has stored an apply as it was sent, or admission has changed it (contract §4)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from kubefoundry_sdk._api import equality, managed_fields
from kubefoundry_sdk._api.conditions import first_of
from kubefoundry_sdk._api.kinds import Kind, Object


def changed(
    stored: Object, sent: Object, manager: str, *, subresource: str = "", shared: Collection[str] = ()
) -> list[str]:
    """Return the annotations, fields of spec and status, and conditions that were not stored as they were sent.

    Args:
        stored: The API server's answer to an apply. What it has beyond `sent` does not matter.
        sent: The body of the apply.
        manager: The field manager.
        subresource: The subresource of the apply, `status` or empty.
        shared: Status fields and types of conditions that do not matter.
    """
    parts = _parts(sent, shared)
    values = _parts(stored, shared)
    if lost := [name for name, value in parts.items() if not _holds(values.get(name), value)]:
        return lost
    fields = managed_fields.owned(stored, manager, subresource)
    owned = _parts(managed_fields.project(stored, fields), shared) if fields else {}
    is_owned = all(_holds(owned.get(name), value) for name, value in parts.items())
    return [] if is_owned else ["metadata.managedFields"]


def describe(kind: Kind, name: str, lost: list[str], *, subresource: str = "") -> str:
    """Return the text for the user about an object that admission has changed."""
    about, resource = (
        ("", kind.plural) if not subresource else ("the status of ", f"{kind.plural}/{subresource}")
    )
    return (
        f"{about}{kind.kind} '{name}' was accepted, but {first_of(lost)} was not stored as sent: an admission "
        f"webhook or policy changes it; exempt {resource} from that"
    )


def _parts(obj: Object, shared: Collection[str]) -> dict[str, Any]:
    return dict(_named(obj, shared))


def _named(obj: Object, shared: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each part that is compared."""
    for name, text in ((obj.get("metadata") or {}).get("annotations") or {}).items():
        yield f"annotation {name}", text
    for name, value in (obj.get("spec") or {}).items():
        yield f"spec.{name}", value
    status = obj.get("status") or {}
    for name, value in status.items():
        if name != "conditions" and name not in shared:
            yield f"status.{name}", value
    for item in status.get("conditions") or ():
        if item.get("type") not in shared:
            yield f"condition {item.get('type')}", item


def _holds(value: Any, sent: Any) -> bool:
    """Check whether a value has everything that was sent. Defaults may add fields."""
    if isinstance(sent, dict):
        return isinstance(value, dict) and all(_holds(value.get(name), below) for name, below in sent.items())
    if isinstance(sent, list):
        return isinstance(value, list) and len(value) == len(sent) and all(map(_holds, value, sent))
    return equality.same(value, sent)
