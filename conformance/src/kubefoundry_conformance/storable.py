"""Prune a value to the parts that the API server stores under a structural schema."""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def storable(value: Any, schema: Schema) -> Any:
    """Return the parts of a value that the API server would store, None if it stores nothing."""
    if not _fits(value, schema):
        return None
    if isinstance(value, dict):
        return _fields(value, schema)
    if isinstance(value, list):
        items = [storable(item, schema.get("items", {})) for item in value]
        return [item for item in items if item is not None]
    return value


def _fields(value: dict[str, Any], schema: Schema) -> Any:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    properties, additional = schema.get("properties", {}), schema.get("additionalProperties")
    parts = {
        name: storable(child, properties.get(name) or additional or {})
        for name, child in value.items()
        if name in properties or isinstance(additional, dict)
    }
    kept = {name: child for name, child in parts.items() if child is not None}
    return kept if all(name in kept for name in schema.get("required", ())) else None


def _fits(value: Any, schema: Schema) -> bool:
    if value is None or (isinstance(value, float) and value != value):
        return False
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, int | str) and not isinstance(value, bool)
    expected_type = schema.get("type")
    if expected_type is not None and not (
        isinstance(value, _TYPES[expected_type])
        and (expected_type == "boolean" or not isinstance(value, bool))
    ):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, int) and not isinstance(value, bool):
        width = {"int32": 31, "int64": 63}.get(schema.get("format", ""), 63)
        minimum, maximum = schema.get("minimum", -(2**63)), schema.get("maximum", 2**63 - 1)
        return bool(max(minimum, -(2**width)) <= value <= min(maximum, 2**width - 1))
    return True
