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
    compared = _compared(sent, shared)
    parts, values = dict(_parts(compared)), dict(_parts(stored))
    if lost := [name for name, value in parts.items() if not _holds(values.get(name), value)]:
        return lost
    fields = managed_fields.owned(stored, manager, subresource)
    is_owned = managed_fields.covers(fields, compared) if fields else not parts
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


def _compared(obj: Object, shared: Collection[str]) -> Object:
    """Return the object with only the fields that are compared."""
    annotations = (obj.get("metadata") or {}).get("annotations")
    status = {name: value for name, value in (obj.get("status") or {}).items() if name not in shared}
    conditions = [item for item in status.pop("conditions", None) or () if item.get("type") not in shared]
    compared = {
        "metadata": {"annotations": annotations} if annotations else {},
        "spec": obj.get("spec"),
        "status": {**status, "conditions": conditions} if conditions else status,
    }
    return {name: part for name, part in compared.items() if part}


def _parts(obj: Object) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each part that is compared."""
    for name, text in ((obj.get("metadata") or {}).get("annotations") or {}).items():
        yield f"annotation {name}", text
    for name, value in (obj.get("spec") or {}).items():
        yield f"spec.{name}", value
    status = obj.get("status") or {}
    for name, value in status.items():
        if name != "conditions":
            yield f"status.{name}", value
    for item in status.get("conditions") or ():
        yield f"condition {item.get('type')}", item


def _holds(value: Any, sent: Any) -> bool:
    """Check whether a value has everything that was sent. Defaults may add fields."""
    if isinstance(sent, dict):
        return isinstance(value, dict) and all(_holds(value.get(name), below) for name, below in sent.items())
    if isinstance(sent, list):
        return isinstance(value, list) and len(value) == len(sent) and all(map(_holds, value, sent))
    return equality.same(value, sent)
