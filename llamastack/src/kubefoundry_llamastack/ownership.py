"""Whether a live child is as it was applied, and adopting children from the existing operator.

Server-side apply with one field manager: fields that the CR no longer requests are removed, because only we own them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from kubefoundry_llamastack.names import LLSD, MANAGED_BY, MANAGED_BY_LABEL, MANAGER, OLD_MANAGER
from kubefoundry_sdk.api import quantity
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.managed_fields import Fields, owned

Ownership = Literal["ours", "leaving", "foreign"]

AMOUNTS: Final = frozenset({"limits", "requests", "sizeLimit", "divisor"})
"""Fields that hold quantities: the API server normalizes them ("0.5" to "500m")."""


def ownership(live: Object, uid: str) -> Ownership:
    """Who owns the object of a child's name.

    ours: its controller is this CR, or it has none and carries the operator's label (the existing operator drops the
        owner on some edits, and a deletion with `--cascade=orphan` leaves it so).
    leaving: it is being deleted, or its controller was an earlier CR.
    foreign: do not touch it.
    """
    meta = live["metadata"]
    controller = next((item for item in meta.get("ownerReferences") or () if item.get("controller")), None)
    if meta.get("deletionTimestamp"):
        return "leaving"
    if controller is None:
        return "ours" if (meta.get("labels") or {}).get(MANAGED_BY_LABEL) == MANAGED_BY else "foreign"
    if controller.get("uid") == uid:
        return "ours"
    of = (controller.get("apiVersion"), controller.get("kind"))
    return "leaving" if of == (LLSD.api_version, LLSD.kind) else "foreign"


def differs(wanted: Object, live: Object) -> bool:
    """Whether an apply of `wanted` would change something: a value, a field of ours that is no longer wanted, or the
    ownership of one that somebody has taken."""
    fields = owned(live, MANAGER)
    if fields is None:
        return True
    meta = wanted["metadata"]
    stated = {key: meta[key] for key in ("labels", "annotations", "ownerReferences") if key in meta}
    body = {key: value for key, value in wanted.items() if key not in ("apiVersion", "kind", "metadata")}
    return _differs({"metadata": stated, **body}, live, fields, "")


def template_stands(template: Object, live: Object) -> bool:
    """Whether what we own of a Deployment's pod template is exactly this one."""
    fields = ((owned(live, MANAGER) or {}).get("f:spec") or {}).get("f:template")
    return fields is not None and not _differs(template, live["spec"]["template"], fields, "")


def _differs(wanted: Any, live: Any, fields: Fields, name: str) -> bool:
    inner = {key: sub for key, sub in fields.items() if key != "."}
    if not inner:
        return not _stands(wanted, live, name)
    if isinstance(wanted, dict):
        if not isinstance(live, dict):
            return True
        ours = {key[2:]: sub for key, sub in inner.items()}
        # An apply with an empty value owns nothing if the API server drops the value.
        stated = {key for key, value in wanted.items() if value not in (None, "", False, [], {})}
        if not (stated <= ours.keys() <= wanted.keys()):
            return True
        return any(
            _differs(wanted[key], live.get(key), sub, name if name in AMOUNTS else key)
            for key, sub in ours.items()
        )
    if isinstance(wanted, list):
        mine, theirs = _Items(wanted), _Items(live or [])
        return len(wanted) != len(inner) or any(
            (one := mine.meant(key)) is None
            or (other := theirs.meant(key)) is None
            or _differs(one, other, sub, name)
            for key, sub in inner.items()
        )
    return True


class _Items:
    """The items of a list, found by the entries of managed fields: `k:` by its keys, `v:` by its value."""

    def __init__(self, items: list[Any]) -> None:
        self._items = items
        self._by: dict[tuple[str, ...], dict[tuple[Any, ...], Any]] = {}

    def meant(self, entry: str) -> Any:
        """The item, None if there is none."""
        mark = json.loads(entry[2:])
        if not entry.startswith("k:"):
            return mark if mark in self._items else None
        names = tuple(mark)
        if names not in self._by:
            maps = [item for item in self._items if isinstance(item, dict)]
            keyed = ((tuple(item.get(name) for name in names), item) for item in maps)
            # a record may hold anything; the API server knows no maps or lists as keys
            self._by[names] = {key: item for key, item in keyed if all(map(_plain, key))}
        return self._by[names].get(tuple(mark.values()))


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _stands(wanted: Any, live: Any, name: str) -> bool:
    """Whether the live value is the wanted one, apart from what the API server fills in."""
    if wanted in (None, "", False, 0, [], {}) and live in (None, "", False, 0, [], {}):
        return True
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(
            _stands(value, live.get(key), name if name in AMOUNTS else key) for key, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(live) and all(
            _stands(one, other, name) for one, other in zip(wanted, live, strict=True)
        )
    return bool(wanted == live) or (name in AMOUNTS and _same_amount(wanted, live))


def _same_amount(one: Any, other: Any) -> bool:
    try:
        return quantity.same(one, other)
    except ValueError:
        return False


def holds(wanted: Object, live: Object) -> bool:
    """Whether the live object has everything that is wanted, whoever wrote it."""
    body = {key: value for key, value in wanted.items() if key not in ("apiVersion", "kind", "metadata")}
    return _within(body, live, "")


def _within(wanted: Any, live: Any, name: str) -> bool:
    """As `_stands`, allowing further items in lists whose items have a name or a path."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(
            _within(value, live.get(key), name if name in AMOUNTS else key) for key, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(live, list):
        mark = next((mark for mark in ("mountPath", "name") if _distinct(wanted, mark)), None)
        if mark is not None:
            known = {
                item.get(mark): item for item in live if isinstance(item, dict) and _plain(item.get(mark))
            }
            return all(_within(item, known.get(item[mark]), name) for item in wanted)
    return _stands(wanted, live, name)


def _distinct(items: list[Any], mark: str) -> bool:
    return bool(items) and all(isinstance(item, dict) and isinstance(item.get(mark), str) for item in items)


ROLLING: Final[Fields] = {
    "f:spec": {"f:strategy": {"f:rollingUpdate": {"f:maxSurge": {}, "f:maxUnavailable": {}}}}
}
"""Filled in by the API server and owned by nobody; once it is ours it can be removed."""


def old_entries(live: Object, cr_name: str) -> list[Mapping[str, Any]]:
    """The entries of the existing operator: it creates as `manager` and applies under the CR's name."""
    return [
        entry
        for entry in live["metadata"].get("managedFields") or ()
        if not entry.get("subresource")
        and (entry.get("manager"), entry.get("operation")) in ((OLD_MANAGER, "Update"), (cr_name, "Apply"))
    ]


def taken_over(live: Object, cr_name: str, api_version: str) -> list[Object]:
    """`managedFields` with everything that the existing operator owned given to us, so that our next apply drops what
    is no longer requested. What others own stays theirs."""
    old = old_entries(live, cr_name)
    ours = [
        entry
        for entry in live["metadata"].get("managedFields") or ()
        if entry.get("manager") == MANAGER
        and entry.get("operation") == "Apply"
        and not entry.get("subresource")
    ]
    merged: dict[str, Any] = {}
    for entry in (*ours, *old):
        merged = union(merged, entry.get("fieldsV1") or {})
    if "rollingUpdate" in ((live.get("spec") or {}).get("strategy") or {}):
        merged = union(merged, ROLLING)
    kept = [entry for entry in live["metadata"].get("managedFields") or () if entry not in (*old, *ours)]
    mine = {
        "manager": MANAGER,
        "operation": "Apply",
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": merged,
    }
    return [*kept, mine]


def union(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """All fields of both."""
    merged = dict(one)
    for key, sub in other.items():
        merged[key] = union(merged[key], sub) if key in merged else dict(sub)
    return merged
