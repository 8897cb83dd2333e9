"""A Kubernetes structural schema compared with a value; unknown fields are errors.

Does what kube-apiserver does with a CRD's `openAPIV3Schema` under `fieldValidation=Strict` (Kubernetes documentation,
"Extend the Kubernetes API with CustomResourceDefinitions": structural schemas and pruning), without defaulting and
`x-kubernetes-validations`, which only a real create shows.

`kubefoundry_sdk._api.structure` is apart: it checks only specs of our own CRD, in sentences for users, and knows the
meaning of each pattern. This module checks objects of any CRD.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

Schema = dict[str, Any]

OBJECT_META = frozenset(
    {
        "name",
        "generateName",
        "namespace",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    }
)
"""Fields of metav1.ObjectMeta, which a CRD's schema need not declare."""

INTEGER_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


def violations(schema: Schema, value: Any) -> list[str]:
    """Return the problems of `value`, an object of the CRD version with this schema: `path: what`, in order.

    Empty if the API server would store the value without refusing or dropping anything (CEL rules aside).
    """
    return list(_check(schema, value, "", strict=True, resource=True))


def _check(schema: Schema, value: Any, path: str, *, strict: bool, resource: bool = False) -> Iterator[str]:
    """Yield the problems of a value. Only `strict` reports unknown fields.

    Schemas inside allOf, anyOf, oneOf and not only check values.
    """
    if value is None:
        if not schema.get("nullable") and "type" in schema:
            yield f"{_at(path)}: must not be null"
        return
    if not has_type(schema, value):
        expected = "integer or string" if schema.get("x-kubernetes-int-or-string") else schema["type"]
        yield f"{_at(path)}: must be {expected}, is {_shown(value)}"
        return
    yield from _check_scalar(schema, value, path)
    if isinstance(value, dict):
        yield from _check_object(schema, value, path, strict, resource or _embedded(schema))
    elif isinstance(value, list):
        yield from _check_list(schema, value, path, strict)
    yield from _check_junctors(schema, value, path)


def _check_scalar(schema: Schema, value: Any, path: str) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"{_at(path)}: {_shown(value)} is not one of {_shown(schema['enum'])}"
    if isinstance(value, str):
        yield from _check_string(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _check_number(schema, value, path)


def storable(schema: Schema, value: Any) -> Any:
    """Return the parts of a value that the API server would store, None if it stores nothing."""
    if value is None or not has_type(schema, value) or any(_check_scalar(schema, value, "")):
        return None
    if isinstance(value, list):
        items = schema.get("items", {})
        return [part for item in value if (part := storable(items, item)) is not None]
    if not isinstance(value, dict):
        return None if _is_unstorable(value) else value
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    return _storable_map(schema, value)


def _storable_map(schema: Schema, value: dict[str, Any]) -> dict[str, Any] | None:
    properties, additional = schema.get("properties", {}), schema.get("additionalProperties")
    parts = {
        name: storable(properties.get(name) or additional or {}, child)
        for name, child in value.items()
        if name in properties or isinstance(additional, dict)
    }
    kept = {name: child for name, child in parts.items() if child is not None}
    return kept if all(name in kept for name in schema.get("required", ())) else None


def _is_unstorable(value: Any) -> bool:
    """Check for a number that JSON or Kubernetes cannot express, in a schema without a format."""
    low, high = INTEGER_RANGES["int64"]
    return (
        not math.isfinite(value)
        if isinstance(value, float)
        else _is_integer(value) and not low <= value <= high
    )


_RANGE: Final = (("minimum", "exclusiveMinimum", operator.lt), ("maximum", "exclusiveMaximum", operator.gt))
_LIMIT_TEXTS: Final = {
    "minimum": "is below the minimum",
    "maximum": "is above the maximum",
    "multipleOf": "is no multiple of",
    "format": "does not fit",
}


def has_type(schema: Schema, value: Any) -> bool:
    """Check whether a value has the type of its schema."""
    if schema.get("x-kubernetes-int-or-string"):
        return _is_integer(value) or isinstance(value, str)
    return "type" not in schema or _TYPES[schema["type"]](value)


def _check_object(
    schema: Schema, value: dict[str, Any], path: str, strict: bool, resource: bool
) -> Iterator[str]:
    properties = schema.get("properties", {})
    additional = schema.get("additionalProperties")
    yield from _missing(schema.get("required", ()), value, path)
    yield from _bounds(len(value), schema, "Properties", "field(s)", path)
    if _embedded(schema):
        yield from _missing(("apiVersion", "kind"), value, path)
    for name, child in value.items():
        below = _join(path, name)
        if resource and name in ("apiVersion", "kind", "metadata"):
            yield from _check_type_and_object_meta(name, child, below)
        elif name in properties:
            yield from _check(properties[name], child, below, strict=strict)
        elif isinstance(additional, dict):
            yield from _check(additional, child, below, strict=strict)
        elif strict and not additional and not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{below}: unknown field"


def _missing(required: Sequence[str], value: Mapping[str, Any], path: str) -> Iterator[str]:
    for name in required:
        if name not in value:
            yield f"{_join(path, name)}: required"


def _check_type_and_object_meta(name: str, child: Any, path: str) -> Iterator[str]:
    if name != "metadata":
        if not isinstance(child, str):
            yield f"{path}: must be string, is {_shown(child)}"
        return
    if not isinstance(child, dict):
        yield f"{path}: must be object, is {_shown(child)}"
        return
    for field, content in child.items():
        if field not in OBJECT_META:
            yield f"{path}.{field}: unknown field"
        elif field in ("labels", "annotations"):
            for key, text in (content or {}).items():
                if not isinstance(text, str):
                    yield f"{_join(f'{path}.{field}', key)}: must be string, is {_shown(text)}"


def _check_list(schema: Schema, value: list[Any], path: str, strict: bool) -> Iterator[str]:
    yield from _bounds(len(value), schema, "Items", "item(s)", path)
    items = schema.get("items")
    if items:
        for index, child in enumerate(value):
            yield from _check(items, child, f"{path}[{index}]", strict=strict)
    if schema.get("x-kubernetes-list-type") == "map":
        keys = schema["x-kubernetes-list-map-keys"]
        declared = (items or {}).get("properties", {})
        identities = [
            {key: item.get(key, declared.get(key, {}).get("default")) for key in keys}
            for item in value
            if isinstance(item, dict)
        ]
        yield from _duplicates(identities, path)
    elif schema.get("x-kubernetes-list-type") == "set" or schema.get("uniqueItems"):
        yield from _duplicates(value, path)


def _duplicates(identities: Sequence[Any], path: str) -> Iterator[str]:
    for index, identity in enumerate(identities):
        if identity in identities[:index]:
            yield f"{path}[{index}]: duplicate of {_shown(identity)}"


def _check_string(schema: Schema, value: str, path: str) -> Iterator[str]:
    yield from _bounds(len(value), schema, "Length", "character(s)", path)
    pattern = schema.get("pattern")
    if pattern and not regex(pattern).search(value):
        yield f"{_at(path)}: {_shown(value)} does not match {pattern}"


def _check_number(schema: Schema, value: int | float, path: str) -> Iterator[str]:
    for keyword in broken_limits(schema, value):
        yield f"{_at(path)}: {value} {_LIMIT_TEXTS[keyword]} {schema[keyword]}"


def broken_limits(schema: Mapping[str, Any], value: int | float) -> Iterator[str]:
    """Yield the keywords of a schema that a number breaks."""
    for keyword, exclusive, is_outside in _RANGE:
        limit = schema.get(keyword)
        if limit is not None and (is_outside(value, limit) or (schema.get(exclusive) and value == limit)):
            yield keyword
    step = schema.get("multipleOf")
    if step is not None and value % step:
        yield "multipleOf"
    bounds = INTEGER_RANGES.get(schema.get("format", ""))
    if bounds and not bounds[0] <= value <= bounds[1]:
        yield "format"


def _check_junctors(schema: Schema, value: Any, path: str) -> Iterator[str]:
    def fits(branch: Schema) -> bool:
        return not any(True for _ in _check(branch, value, path, strict=False))

    for branch in schema.get("allOf", ()):
        yield from _check(branch, value, path, strict=False)
    if "anyOf" in schema and not any(fits(branch) for branch in schema["anyOf"]):
        yield f"{_at(path)}: fits no branch of anyOf"
    if "oneOf" in schema:
        fitting = sum(fits(branch) for branch in schema["oneOf"])
        if fitting != 1:
            yield f"{_at(path)}: fits {fitting} branches of oneOf, must fit 1"
    if "not" in schema and fits(schema["not"]):
        yield f"{_at(path)}: must not fit the schema under not"


def _bounds(count: int, schema: Schema, what: str, unit: str, path: str) -> Iterator[str]:
    low, high = schema.get(f"min{what}"), schema.get(f"max{what}")
    if low is not None and count < low:
        yield f"{_at(path)}: {count} {unit}, at least {low} needed"
    if high is not None and count > high:
        yield f"{_at(path)}: {count} {unit}, at most {high} allowed"


def _embedded(schema: Schema) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource"))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": lambda value: _is_integer(value) or isinstance(value, float),
}


@cache
def regex(pattern: str) -> re.Pattern[str]:
    """Return a pattern in which `$` matches only at the end of the text, as in Go, not before a final newline."""
    return re.compile(re.sub(r"(?<!\\)\$$", r"\\Z", pattern))


def _at(path: str) -> str:
    return path or "the object"


def _join(path: str, name: str) -> str:
    step = name if re.fullmatch(r"[\w-]+", name) else f"[{json.dumps(name)}]"
    return f"{path}.{step}" if path and not step.startswith("[") else f"{path}{step}"


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."
