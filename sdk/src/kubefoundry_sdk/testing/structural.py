"""Compare a value with a Kubernetes structural schema, as kube-apiserver does for objects of a CRD.

Source: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions" (structural schemas and
pruning). Defaults and rules in CEL are in `_server.schemas`.

`kubefoundry_sdk._api.structure` is separate: it checks only specs of our own CRD, in sentences for users, and knows
the meaning of each pattern.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.untrusted import mapping
from kubefoundry_sdk.testing._server.errors import Problem

Schema = Mapping[str, Any]

OBJECT_META: Final = frozenset(
    {
        *("name", "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers"),
        *("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"),
        *("deletionGracePeriodSeconds", "managedFields", "selfLink"),
    }
)
"""Fields of metav1.ObjectMeta, which a CRD's schema need not declare."""

INTEGER_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}

_IMPLICIT: Final = ("apiVersion", "kind", "metadata")
_FORMATS: Final = {
    "byte": re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"),
    "date-time": re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"),
}
"""Formats of strings that are checked."""


def violations(schema: Schema, value: Any) -> list[str]:
    """Return the problems of `value`, an object of the CRD version with this schema, each as `path: problem`.

    Empty if the API server would store the value without refusing or dropping anything (CEL rules aside).
    """
    dropped: list[str] = []
    prune(value, schema, "", dropped, resource=True)
    of_metadata = _metadata_problems(value, schema, "", is_resource=True)
    broken = [*problems(value, schema, ""), *duplicates(value, schema, ""), *of_metadata]
    return [
        *(f"{problem.field or 'the object'}: {problem.text}" for problem in broken),
        *(f"{path}: unknown field" for path in dropped),
    ]


def prune(value: Any, schema: Schema, path: str, dropped: list[str], *, resource: bool = False) -> Any:
    """Return the value without undeclared fields, whose paths are added to `dropped`."""
    if isinstance(value, list):
        items = schema.get("items", schema if _is_open(schema) else {})
        return [prune(item, items, f"{path}[{index}]", dropped) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    implicit = _IMPLICIT if resource or schema.get("x-kubernetes-embedded-resource") else ()
    kept = {}
    for name, child in value.items():
        declared = None if name in implicit else declared_field(schema, name)
        if declared is not None:
            kept[name] = prune(child, declared, _join(path, name), dropped)
        elif name in implicit or _is_open(schema):
            kept[name] = child
        else:
            dropped.append(_join(path, name))
    return kept


def _is_open(schema: Schema) -> bool:
    """Check whether fields that the schema does not declare are stored."""
    return bool(schema.get("additionalProperties") or schema.get("x-kubernetes-preserve-unknown-fields"))


def declared_field(schema: Schema, name: str) -> Schema | None:
    """Return the schema of a field; None if the schema says nothing about it."""
    declared = (schema.get("properties") or {}).get(name, schema.get("additionalProperties"))
    return declared if isinstance(declared, Mapping) else None


def problems(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    """Yield the reasons for which the API server refuses a value, apart from repeated items and rules in CEL."""
    if value is None and (
        schema.get("nullable") or not schema.keys() & {"type", "x-kubernetes-int-or-string"}
    ):
        return
    # The API server accepts a list by mistake where the schema has a format of texts.
    is_list = isinstance(value, list) and schema.get("format", "") in _FORMATS
    is_typed = value is not None and (is_list or has_type(schema, value))
    if not is_typed:
        yield from _type_problems(value, schema, path)
    yield from _enum_problems(value, schema, path)
    if is_typed:
        yield from _content_problems(value, schema, path)
        yield from _format_problems(value, schema, path)
    if value is not None:
        yield from _junctor_problems(value, schema, path)


def _enum_problems(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    allowed = schema.get("enum")
    if allowed is not None and not any(same(value, choice) for choice in allowed):
        text = f"Unsupported value: {_shown(value)}: supported values: {', '.join(map(_shown, allowed))}"
        yield Problem("FieldValueNotSupported", path, text)


def _type_problems(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    expected = "integer,string" if schema.get("x-kubernetes-int-or-string") else schema.get("type")
    text = f"{_shown(value)}: {path} in body must be of type {expected}: {_shown(_type_of(value))}"
    yield Problem("FieldValueTypeInvalid", path, f"Invalid value: {text}")
    if isinstance(value, float) and schema.get("type") == "integer":
        yield _unplaced(path, f"must be of type integer ({schema.get('format', 'default format')})")


def _content_problems(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    if isinstance(value, dict):
        yield from _object_problems(value, schema, path)
    elif isinstance(value, list):
        yield from _list_problems(value, schema, path)
    elif isinstance(value, str):
        yield from _text_problems(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_problems(value, schema, path)


def _object_problems(value: dict[str, Any], schema: Schema, path: str) -> Iterator[Problem]:
    for name in schema.get("required") or ():
        if name not in value:
            yield Problem("FieldValueRequired", _join(path, name), "Required value")
    if len(value) > schema.get("maxProperties", len(value)):
        text = f"Too many: {len(value)}: must have at most {schema['maxProperties']} items"
        yield Problem("FieldValueTooMany", path, text)
    if len(value) < schema.get("minProperties", 0):
        yield _out_of_bounds(path, value, f"should have at least {schema['minProperties']} properties")
    for name, child in value.items():
        if (declared := declared_field(schema, name)) is not None and not (not path and name in _IMPLICIT):
            yield from problems(child, declared, _join(path, name))


def _list_problems(value: list[Any], schema: Schema, path: str) -> Iterator[Problem]:
    if len(value) > schema.get("maxItems", len(value)):
        yield Problem(
            "FieldValueTooMany", path, f"Too many: {len(value)}: must have at most {schema['maxItems']} items"
        )
    if len(value) < schema.get("minItems", 0):
        yield _out_of_bounds(path, value, f"should have at least {schema['minItems']} items")
    for index, item in enumerate(value):
        yield from problems(item, schema.get("items") or {}, f"{path}[{index}]")


def _text_problems(value: str, schema: Schema, path: str) -> Iterator[Problem]:
    if len(value) > schema.get("maxLength", len(value)):
        yield Problem(
            "FieldValueTooLong", path, f"Too long: may not be more than {schema['maxLength']} bytes"
        )
    if len(value) < schema.get("minLength", 0):
        yield _out_of_bounds(path, value, f"should be at least {schema['minLength']} chars long")
    pattern = schema.get("pattern")
    if pattern and not regex(pattern).search(value):
        yield _out_of_bounds(path, value, f"should match '{pattern}'")


def _format_problems(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    name = schema.get("format", "")
    if isinstance(value, str) and name in _FORMATS and not _FORMATS[name].fullmatch(value):
        text = f"Invalid value: {_shown(value)}: {path} in body must be of type {name}: {_shown(value)}"
        yield Problem("FieldValueTypeInvalid", path, text)


_LIMIT_TEXTS: Final = {
    "minimum": "should be greater than or equal to",
    "maximum": "should be less than or equal to",
    "multipleOf": "should be a multiple of",
}


def _number_problems(value: int | float, schema: Schema, path: str) -> Iterator[Problem]:
    for keyword in broken_limits(schema, value):
        if keyword == "format":
            yield _unplaced(path, f"must be of type integer with format {schema['format']}")
        else:
            yield _out_of_bounds(path, value, f"{_LIMIT_TEXTS[keyword]} {schema[keyword]}")


def _junctor_problems(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    def fits(branch: Schema) -> bool:
        return not any(True for _ in problems(value, branch, path))

    for branch in schema.get("allOf") or ():
        yield from problems(value, branch, path)
    if "anyOf" in schema and not any(map(fits, schema["anyOf"])):
        yield _unplaced(path, "must validate at least one schema (anyOf)")
        yield from problems(value, schema["anyOf"][0], path)
    if "oneOf" in schema and sum(map(fits, schema["oneOf"])) != 1:
        yield _unplaced(path, "must validate one and only one schema (oneOf)")
    if "not" in schema and fits(schema["not"]):
        yield _unplaced(path, "must not validate the schema (not)")


def _unplaced(path: str, text: str) -> Problem:
    """Return a problem for which the API server names no field in the cause."""
    return Problem("FieldValueInvalid", "", f'Invalid value: "": "{path}" {text}')


def _metadata_problems(
    value: Any, schema: Schema, path: str, *, is_resource: bool = False
) -> Iterator[Problem]:
    """Yield problems of the fields that a resource, or one embedded in it, has without declaring them."""
    is_embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    if isinstance(value, dict) and (is_resource or is_embedded):
        for name in ("apiVersion", "kind") if is_embedded else ():
            if name not in value:
                yield Problem("FieldValueRequired", _join(path, name), "Required value")
        for name in sorted(mapping(value.get("metadata")).keys() - OBJECT_META):
            yield Problem("FieldValueInvalid", _join(path, f"metadata.{name}"), "unknown field")
        for name, content, type_ in _implicit_fields(value):
            if not has_type({"type": type_}, content):
                yield from _type_problems(content, {"type": type_}, _join(path, name))
    for child, declared, below in children(value, schema, path):
        yield from _metadata_problems(child, declared, below)


def _implicit_fields(resource: dict[str, Any]) -> list[tuple[str, Any, str]]:
    """Return path, value and type of each field that a resource has without declaring it."""
    meta = resource.get("metadata", {})
    labels = {
        f"metadata.{name}": content
        for name in ("labels", "annotations")
        if (content := mapping(meta).get(name))
    }
    texts: dict[str, Any] = {name: resource[name] for name in ("apiVersion", "kind") if name in resource}
    texts |= {f"{at}.{key}": text for at, content in labels.items() for key, text in mapping(content).items()}
    return [
        *((name, content, "object") for name, content in {"metadata": meta, **labels}.items()),
        *((name, text, "string") for name, text in texts.items()),
    ]


def duplicates(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    """Yield repeated items of sets and list-maps, and items of list-maps that have no keys."""
    if isinstance(value, list):
        identities = [_identity(item, schema) for item in value]
        for index, identity in enumerate(identities):
            if schema.get("x-kubernetes-list-type") == "map" and not isinstance(value[index], dict):
                text = (
                    f"Invalid value: {_shown(value[index])}: must be an object for an array of list-type map"
                )
                yield Problem("FieldValueInvalid", f"{path}[{index}]", text)
            if identity is not None and any(same(identity, other) for other in identities[:index]):
                yield Problem(
                    "FieldValueDuplicate", f"{path}[{index}]", f"Duplicate value: {_shown(identity)}"
                )
    for child, declared, below in children(value, schema, path):
        yield from duplicates(child, declared, below)


def children(value: Any, schema: Schema, path: str) -> Iterator[tuple[Any, Schema, str]]:
    """Yield the declared fields of a map or the items of a list, with schema and path."""
    if isinstance(value, dict):
        for name, child in value.items():
            if (declared := declared_field(schema, name)) is not None:
                yield child, declared, _join(path, name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield item, schema.get("items") or {}, f"{path}[{index}]"


def _identity(item: Any, schema: Schema) -> Any:
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return item
        case "map" if isinstance(item, dict):
            fields = (schema.get("items") or {}).get("properties") or {}
            keys = schema["x-kubernetes-list-map-keys"]
            defaults = {key: fields[key]["default"] for key in keys if "default" in fields.get(key, {})}
            return {**defaults, **{key: item[key] for key in keys if key in item}}
        case _:
            return None


def _out_of_bounds(path: str, value: Any, text: str) -> Problem:
    return Problem("FieldValueInvalid", path, f"Invalid value: {_shown(value)}: {path} in body {text}")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def storable(schema: Schema, value: Any) -> Any:
    """Return the parts of a value that the API server would store, None if it stores nothing."""
    if value is None or not has_type(schema, value) or any(_enum_problems(value, schema, "")):
        return None
    if isinstance(value, list):
        items = schema.get("items", {})
        return [part for item in value if (part := storable(items, item)) is not None]
    if isinstance(value, dict):
        is_open = schema.get("x-kubernetes-preserve-unknown-fields")
        return value if is_open else _storable_map(schema, value)
    return None if any(_content_problems(value, schema, "")) or _is_unstorable(value) else value


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


def has_type(schema: Schema, value: Any) -> bool:
    """Check whether a value has the type of its schema."""
    if schema.get("x-kubernetes-int-or-string"):
        return _is_integer(value) or isinstance(value, str)
    return "type" not in schema or _TYPES[schema["type"]](value)


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
