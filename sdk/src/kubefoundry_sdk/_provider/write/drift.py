"""Drift: a value on the live object that differs from what was applied (contract §4.19).

Only values of the applied manifest are compared. A generation, the owner of a field or a value that the upstream adds
is not drift. Module `ownership` of the LlamaStack operator is separate. It records no applied values, so it compares
objects by the owner of each field. Its objects are of built-in kinds, of which the API server drops values such as
false and 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubefoundry_sdk._api import quantity
from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.managed_fields import pattern
from kubefoundry_sdk._api.owner_references import beside_controller
from kubefoundry_sdk._api.untrusted import mappings, part

_AMOUNT: Final = re.compile(r"\.resources\.(requests|limits)\.|\.(sizeLimit|divisor)$")
"""Paths at which Kubernetes normalizes an amount: `1024Mi` to `1Gi`."""

_SELECTOR: Final = "spec.selector"
"""The selector of a Service, which selects the pods that have all of its labels: a label that somebody adds leaves
the Service without pods. To Kubernetes the map is one value (`x-kubernetes-map-type: atomic`), so an apply removes
the label."""

_METADATA: Final = ("labels", "annotations", "ownerReferences")


def differences(manifest: Object, live: Object, ignored_differences: Sequence[str] = ()) -> list[str]:
    """Return the paths (`spec.services.Frontend.replicas`) at which the live object differs from the manifest.

    The provider leaves `ignored_differences` to others once the object exists; `[*]` means every item.
    """
    return list(values(manifest, live, ignored_differences))


def values(manifest: Object, live: Object, ignored_differences: Sequence[str] = ()) -> dict[str, Any]:
    """Return the live value at each path of `differences`; None if there is no value."""
    fields = by_field(manifest, live, ignored_differences)
    return {path: value for differing in fields.values() for path, value in differing.items()}


def by_field(
    manifest: Object, live: Object, ignored_differences: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """Return `values` for each field of the manifest (`metadata`, `spec`) in which something differs."""
    ignored = {pattern(path) for path in ignored_differences}
    fields: dict[str, dict[str, Any]] = {}
    for key in manifest:
        differing = _differing(key, manifest, live)
        kept = {path: value for path, value in differing.items() if pattern(path) not in ignored}
        if kept:
            fields[key] = kept
    return fields


def _differing(key: str, manifest: Object, live: Object) -> dict[str, Any]:
    """Return the live value at each path of a field of the manifest at which it differs."""
    differing: dict[str, Any] = {}
    if key == "metadata":
        _compare_metadata(manifest[key], live.get(key) or {}, differing)
    elif key not in ("apiVersion", "kind"):
        _compare(manifest[key], live.get(key), key, differing)
    if key == "spec" and (manifest.get("apiVersion"), manifest.get("kind")) == ("v1", "Service"):
        _compare_selector(part(manifest, "spec", "selector"), part(live, "spec", "selector"), differing)
    return differing


def _compare_metadata(applied: Object, live: Object, differing: dict[str, Any]) -> None:
    for key in _METADATA:
        if key in applied:
            value = applied[key]
            if key == "ownerReferences" and isinstance(value, list):
                value = beside_controller(value, live.get(key))
            _compare(value, live.get(key), f"metadata.{key}", differing)


def _compare_selector(applied: Mapping[str, Any], live: Mapping[str, Any], differing: dict[str, Any]) -> None:
    if applied and live.keys() - applied.keys():
        differing[_SELECTOR] = live


def _compare(applied: Any, live: Any, path: str, differing: dict[str, Any]) -> None:
    if isinstance(applied, dict):
        if not isinstance(live, dict):
            # An upstream may drop an empty map, so this is not a difference.
            if applied or live is not None:
                differing[path] = live
            return
        for key, value in applied.items():
            # Most values are equal texts, and need no path.
            if type(value) is not str or value != live.get(key):
                _compare(value, live.get(key), f"{path}.{key}", differing)
    elif isinstance(applied, list):
        _compare_list(applied, live, path, differing)
    elif not same(applied, live) and not (_AMOUNT.search(path) and quantity.same(applied, live)):
        differing[path] = live


def _compare_list(applied: list[Any], live: Any, path: str, differing: dict[str, Any]) -> None:
    """Match items by name (owners by uid), and others by index."""
    if not isinstance(live, list):
        if applied or live is not None:
            differing[path] = live
        return
    key = next((name for name in ("uid", "name") if distinct_by(applied, name)), None)
    if key is None:
        _compare_by_index(applied, live, path, differing)
        return
    live_items = {item[key]: item for item in mappings(live) if isinstance(item.get(key), str)}
    for item in applied:
        _compare(item, live_items.get(item[key]), f"{path}[{item[key]}]", differing)


def _compare_by_index(applied: list[Any], live: list[Any], path: str, differing: dict[str, Any]) -> None:
    if len(live) < len(applied) or (len(live) > len(applied) and not mappings(applied)):
        differing[path] = live
        return
    for index, value in enumerate(applied):
        if type(value) is not str or value != live[index]:
            _compare(value, live[index], f"{path}[{index}]", differing)


def holds(applied: Any, live: Any) -> bool:
    """Check whether the live value has everything that was applied."""
    differing: dict[str, Any] = {}
    _compare(applied, live, "", differing)
    return not differing


def distinct_by(items: Any, name: str) -> bool:
    """Check whether `items` is a list of objects with distinct strings under the key. Ports may share a name."""
    if not isinstance(items, list) or not items:
        return False
    marks = set()
    for item in items:
        mark = item.get(name) if isinstance(item, dict) else None
        if not isinstance(mark, str) or mark in marks:
            return False
        marks.add(mark)
    return True
