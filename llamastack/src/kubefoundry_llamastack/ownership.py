"""Compares a live child with its manifest, and adopts children from the existing operator.

Server-side apply uses one field manager. Fields that the CR no longer requests are removed, because only we
own them. `kubefoundry_sdk._provider.write.drift` is separate: it compares objects of any CRD, of which nothing is
dropped, with the recorded values of the last apply.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from kubefoundry_llamastack.names import LLSD, MANAGED_BY, MANAGED_BY_LABEL, MANAGER, OLD_MANAGER
from kubefoundry_sdk._api import quantity
from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.managed_fields import Fields, owned
from kubefoundry_sdk._api.untrusted import part

Ownership = Literal["ours", "leaving", "foreign"]

AMOUNTS: Final = frozenset({"limits", "requests", "sizeLimit", "divisor"})
"""Fields that hold quantities: the API server normalizes them ("0.5" to "500m")."""
UNORDERED: Final = frozenset({"metrics"})
"""Lists whose order means nothing. An API server that stores autoscalers as autoscaling/v1 returns the metric of the
CPU last (seen on Kubernetes 1.26)."""
_DROPPED: Final[tuple[Any, ...]] = (None, "", False, 0, [], {})
"""Values that the API server drops from objects of built-in kinds."""


def ownership(live: Object, uid: str) -> Ownership:
    """Determine who owns the object of a child's name.

    Returns:
        `ours`: its controller is this CR, or it has none and carries the operator's label. The existing
            operator drops the owner on some edits, and a deletion with `--cascade=orphan` leaves it so.
        `leaving`: it is being deleted, or its controller was an earlier CR.
        `foreign`: do not touch it.
    """
    meta = live["metadata"]
    controller = controller_of(live)
    if meta.get("deletionTimestamp"):
        return "leaving"
    if controller is None:
        return "ours" if (meta.get("labels") or {}).get(MANAGED_BY_LABEL) == MANAGED_BY else "foreign"
    if controller.get("uid") == uid:
        return "ours"
    of = (controller.get("apiVersion"), controller.get("kind"))
    return "leaving" if of == (LLSD.api_version, LLSD.kind) else "foreign"


def controller_of(live: Object) -> Object | None:
    """Return the owner reference of the object's controller, None without one."""
    references: list[Object] = live["metadata"].get("ownerReferences") or []
    return next((item for item in references if item.get("controller")), None)


def without_owners(manifest: Object) -> Object:
    """Return the manifest without owner references, which only a writer that may delete the object can restore."""
    meta = {key: value for key, value in manifest["metadata"].items() if key != "ownerReferences"}
    return {**manifest, "metadata": meta}


def differs(manifest: Object, live: Object) -> bool:
    """Check whether an apply would change a field.

    It would change a value, remove a field of ours, or take back a field that somebody has taken.
    """
    fields = owned(live, MANAGER)
    if fields is None:
        return True
    meta = manifest["metadata"]
    metadata = {key: meta[key] for key in ("labels", "annotations", "ownerReferences") if key in meta}
    body = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind", "metadata")}
    return _differs({"metadata": metadata, **body}, live, fields, "")


def template_matches(template: Object, live: Object) -> bool:
    """Check whether our fields of a Deployment's pod template are exactly this template."""
    fields = ((owned(live, MANAGER) or {}).get("f:spec") or {}).get("f:template")
    return fields is not None and not _differs(template, live["spec"]["template"], fields, "")


def _differs(desired: Any, live: Any, fields: Fields, name: str) -> bool:
    inner = {key: sub for key, sub in fields.items() if key != "."}
    if not inner:
        return not _is_equal(desired, live, name)
    if isinstance(desired, dict):
        return not isinstance(live, dict) or _map_differs(desired, live, inner, name)
    return not isinstance(desired, list) or _list_differs(desired, live or [], inner, name)


def _map_differs(desired: Object, live: Object, fields: Fields, name: str) -> bool:
    ours = {key[2:]: sub for key, sub in fields.items()}
    # An apply with an empty value owns nothing if the API server drops the value.
    stated = {key for key, value in desired.items() if value not in (None, "", False, [], {})}
    return not (stated <= ours.keys() <= desired.keys()) or any(
        _differs(desired[key], live.get(key), sub, _field_name(name, key)) for key, sub in ours.items()
    )


def _list_differs(desired: list[Any], live: list[Any], fields: Fields, name: str) -> bool:
    desired_items, live_items = _Items(desired), _Items(live)
    return len(desired) != len(fields) or any(
        (desired_item := desired_items.find(key)) is None
        or (live_item := live_items.find(key)) is None
        or _differs(desired_item, live_item, sub, name)
        for key, sub in fields.items()
    )


def _field_name(parent: str, key: str) -> str:
    """Return the name that decides how a value is compared: all values below a field of quantities are quantities."""
    return parent if parent in AMOUNTS else key


class _Items:
    """Finds items of a list by the entries of managed fields: `k:` by its keys, `v:` by its value."""

    def __init__(self, items: list[Any]) -> None:
        self._items = items
        self._by: dict[tuple[str, ...], dict[tuple[Any, ...], Any]] = {}

    def find(self, entry: str) -> Any:
        """Return the item, None if there is none."""
        mark = json.loads(entry[2:])
        if not entry.startswith("k:"):
            return mark if mark in self._items else None
        names = tuple(mark)
        if names not in self._by:
            maps = [item for item in self._items if isinstance(item, dict)]
            keyed = ((tuple(item.get(name) for name in names), item) for item in maps)
            # a record may hold anything; the API server knows no maps or lists as keys
            self._by[names] = {key: item for key, item in keyed if all(map(_is_scalar, key))}
        return self._by[names].get(tuple(mark.values()))


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _is_equal(desired: Any, live: Any, name: str, *, contained: bool = False) -> bool:
    """Compare the values, apart from defaults of the API server.

    With `contained`, the live value may have further items in lists whose items have a name or a path.
    """
    if desired in _DROPPED and live in _DROPPED:
        return True
    if isinstance(desired, dict) and isinstance(live, dict):
        return all(
            _is_equal(value, live.get(key), _field_name(name, key), contained=contained)
            for key, value in desired.items()
        )
    if isinstance(desired, list) and isinstance(live, list):
        return _are_items_equal(desired, live, name, contained=contained)
    return same(desired, live) or (name in AMOUNTS and quantity.same(desired, live))


def _are_items_equal(desired: list[Any], live: list[Any], name: str, *, contained: bool) -> bool:
    if name in UNORDERED:
        return len(desired) == len(live) and all(
            any(_is_equal(item, other, "") for other in live) for item in desired
        )
    key_field = _list_key(desired) if contained else None
    if key_field is None:
        pairs = zip(desired, live, strict=False)
        return len(desired) == len(live) and all(_is_equal(*pair, name) for pair in pairs)
    by_key = {
        item.get(key_field): item
        for item in live
        if isinstance(item, dict) and _is_scalar(item.get(key_field))
    }
    return all(_is_equal(item, by_key.get(item[key_field]), name, contained=True) for item in desired)


def _list_key(items: list[Any]) -> str | None:
    """Return the field that all items have a text in: their path or name."""
    for field in ("mountPath", "name"):
        if items and all(isinstance(item, dict) and isinstance(item.get(field), str) for item in items):
            return field
    return None


def contains(manifest: Object, live: Object) -> bool:
    """Check whether the live object has everything in the manifest, whoever wrote it."""
    body = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind", "metadata")}
    return _is_equal(body, live, "", contained=True)


ROLLING: Final[Fields] = {
    "f:spec": {"f:strategy": {"f:rollingUpdate": {"f:maxSurge": {}, "f:maxUnavailable": {}}}}
}
"""Filled in by the API server and owned by nobody; once it is ours it can be removed."""


def old_entries(live: Object, cr_name: str) -> list[Mapping[str, Any]]:
    """Return the existing operator's entries: it creates as `manager` and applies under the CR's name."""
    return _entries(live, (OLD_MANAGER, "Update"), (cr_name, "Apply"))


def _entries(live: Object, *writers: tuple[str, str]) -> list[Mapping[str, Any]]:
    """Return the entries of these managers and operations."""
    return [
        entry
        for entry in live["metadata"].get("managedFields") or ()
        if not entry.get("subresource") and (entry.get("manager"), entry.get("operation")) in writers
    ]


def transfer_ownership(live: Object, cr_name: str, api_version: str) -> list[Object]:
    """Return `managedFields` with all of the existing operator's fields transferred to us.

    Our next apply then drops fields that are no longer requested. Fields of others stay theirs.
    """
    transferred = [*_entries(live, (MANAGER, "Apply")), *old_entries(live, cr_name)]
    merged: dict[str, Any] = {}
    for entry in transferred:
        merged = merge_fields(merged, entry.get("fieldsV1") or {})
    if "rollingUpdate" in part(live, "spec", "strategy"):
        merged = merge_fields(merged, ROLLING)
    other_entries = [
        entry for entry in live["metadata"].get("managedFields") or () if entry not in transferred
    ]
    merged_entry = {
        "manager": MANAGER,
        "operation": "Apply",
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": merged,
    }
    return [*other_entries, merged_entry]


def merge_fields(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of both."""
    merged = dict(first)
    for key, sub in second.items():
        merged[key] = merge_fields(merged[key], sub) if key in merged else dict(sub)
    return merged
