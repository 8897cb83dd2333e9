"""Predict the stored object after `kubectl apply -f`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_sdk._api.foreign_json import decode
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import mapping

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which `kubectl apply` keeps the file that it applied last."""

SERVER_SIDE: Final = "kubectl"
"""The field manager of `kubectl apply --server-side`."""


def applied(obj: Object, live: Object) -> Object:
    """Return the live object after an apply of the file's object.

    As with kubectl, a field that the file does not set keeps its value, because somebody else may have set it. If the
    previously applied file set the field, the apply removes it. One difference: variables that others have added to
    `env` stay after a server-side apply, but not in this result.

    Args:
        obj: The object in the file. Only its labels, annotations and spec are used.
        live: The stored object of the same name.
    """
    before, others = _last_applied(live)
    meta, named, foreign = {**live["metadata"]}, _map(before, "metadata"), _map(others, "metadata")
    for part in ("labels", "annotations"):
        if obj["metadata"].get(part) or named.get(part):
            meta[part] = _merged(
                _map(named, part), _map(obj["metadata"], part), _map(meta, part), _map(foreign, part)
            )
    spec = _merged(_map(before, "spec"), obj["spec"], _map(live, "spec"), _map(others, "spec"))
    return {**live, "metadata": meta, "spec": spec}


def _merged(
    before: Mapping[str, Any], after: Mapping[str, Any], live: Mapping[str, Any], others: Mapping[str, Any]
) -> Object:
    """Return the live map after an apply, as kubectl merges custom resources: maps by key, lists as a whole.

    Args:
        before: The map that was applied last.
        after: The map to apply. A null removes a field only if it was applied last.
        live: The stored map.
        others: The part of the stored map that other managers own. It stays if it is no longer applied.
    """
    result = dict(live)
    for key in before.keys() & live.keys():
        if after.get(key) is None:
            del result[key]
            if key in others:
                result[key] = others[key]
    for key, value in after.items():
        if isinstance(value, Mapping):
            result[key] = _merged(_map(before, key), value, _map(result, key), _map(others, key))
        elif value is not None:
            result[key] = value
    return result


def kept(obj: Object, result: Object, defaults: Object) -> list[str]:
    """Return the spec fields that stay although the file does not set them, as `PATH=VALUE`. Skip default values.

    Args:
        obj: The object of the file.
        result: The object after the apply.
        defaults: The file's spec with the defaults of the API server.
    """
    return sorted(_kept(obj["spec"], result["spec"], defaults, "spec"))


def _kept(file: Any, result: Mapping[str, Any], defaults: Any, path: str) -> list[str]:
    kept = []
    for key, value in result.items():
        place, named = f"{path}.{key}", mapping(file).get(key)
        if isinstance(value, Mapping):
            kept += _kept(named, value, mapping(defaults).get(key), place)
        elif named is None and value != mapping(defaults).get(key):
            kept.append(f"{place}={value if isinstance(value, str) else json.dumps(value)}")
    return kept


def _map(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the map at a key, empty if there is none."""
    return mapping(parent.get(key))


def _last_applied(live: Object) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the part of the object that kubectl applied last, and the part that other managers own.

    After a client-side apply, an annotation has the first part, and the second part is empty. After a server-side
    apply, both parts come from `managedFields`. A field of another manager stays if kubectl no longer applies it.
    """
    if (text := _map(live["metadata"], "annotations").get(LAST_APPLIED)) is not None:
        try:
            return mapping(decode(str(text).encode())), {}
        except ValueError:
            return {}, {}
    applied_fields: dict[str, Any] = {}
    other_fields: dict[str, Any] = {}
    for entry in live["metadata"].get("managedFields") or ():
        if not entry.get("subresource"):
            is_ours = (entry.get("manager"), entry.get("operation")) == (SERVER_SIDE, "Apply")
            _add(applied_fields if is_ours else other_fields, entry.get("fieldsV1") or {})
    return mapping(_owned(live, applied_fields)), mapping(_owned(live, other_fields))


def _add(fields: dict[str, Any], further: Mapping[str, Any]) -> None:
    """Add the fields of another manager, in the form of `fieldsV1`."""
    for key, below in further.items():
        _add(fields.setdefault(key, {}), below)


def _owned(value: Any, fields: Mapping[str, Any]) -> Any:
    """Return the part of the value that is in `fields` (`fieldsV1`). A map that was applied empty stays empty."""
    if not isinstance(value, Mapping):
        return value
    names = {key.removeprefix("f:"): sub for key, sub in fields.items()}
    return {name: _owned(value[name], sub) for name, sub in names.items() if name in value}
