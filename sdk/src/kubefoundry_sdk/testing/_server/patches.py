"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386) as the API server applies them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk.testing._server.errors import bad_request, unpatchable


def merge_patched(value: Any, patch: Any) -> Any:
    """Return the value with a merge patch applied."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for name, child in patch.items():
        if child is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patched(merged.get(name), child)
    return merged


def json_patched(value: Any, operations: Any) -> Any:
    """Return the value with a JSON patch applied. Raise Refused if it does not fit."""
    if not isinstance(operations, list) or not all(isinstance(item, dict) for item in operations):
        raise bad_request("error decoding patch: it is not a list of operations")
    patched = copy.deepcopy(value)
    for operation in operations:
        patched = _operated(patched, operation)
    return patched


def _operated(value: Any, operation: Mapping[str, Any]) -> Any:
    path = _steps(operation.get("path"))
    match operation.get("op"):
        case "add":
            return _add(value, path, copy.deepcopy(operation.get("value")))
        case "remove":
            return _remove(value, path)
        case "replace":
            return _replace(value, path, copy.deepcopy(operation.get("value")))
        case "test":
            found = _at(value, path, missing_is_null=True)
            if not same(found, operation.get("value")):
                raise unpatchable()
            return value
        case "copy":
            return _add(value, path, copy.deepcopy(_at(value, _steps(operation.get("from")))))
        case "move":
            source = _steps(operation.get("from"))
            moved = _at(value, source)
            return _add(_remove(value, source), path, moved)
        case _:
            raise unpatchable()


def _steps(pointer: Any) -> list[str]:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise unpatchable()
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _at(value: Any, path: list[str], *, missing_is_null: bool = False) -> Any:
    for index, step in enumerate(path):
        is_last = index == len(path) - 1
        if isinstance(value, dict):
            if step not in value and not (missing_is_null and is_last):
                raise unpatchable()
            value = value.get(step)
        elif isinstance(value, list):
            value = value[_index(step, len(value) - 1)]
        else:
            raise unpatchable()
    return value


def _add(value: Any, path: list[str], new: Any) -> Any:
    if not path:
        return new
    parent = _at(value, path[:-1])
    if isinstance(parent, dict):
        parent[path[-1]] = new
    elif isinstance(parent, list):
        at = len(parent) if path[-1] == "-" else _index(path[-1], len(parent))
        parent.insert(at, new)
    else:
        raise unpatchable()
    return value


def _replace(value: Any, path: list[str], new: Any) -> Any:
    """Replace a value. The API server's library accepts a missing key of a map."""
    if path and isinstance(parent := _at(value, path[:-1]), list):
        parent[_index(path[-1], len(parent) - 1)] = new
        return value
    return _add(value, path, new)


def _remove(value: Any, path: list[str]) -> Any:
    if not path:
        raise unpatchable()
    _at(value, path)
    parent = _at(value, path[:-1])
    if isinstance(parent, dict):
        del parent[path[-1]]
    else:
        del parent[_index(path[-1], len(parent) - 1)]
    return value


def _index(step: str, most: int) -> int:
    if not step.isdigit() or int(step) > most:
        raise unpatchable()
    return int(step)
