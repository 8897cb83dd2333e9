"""A CRD's structural schema as the API server applies it: pruning, nulls, defaults, validation with causes."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.rules import RULES
from kubefoundry_sdk.testing import structural
from kubefoundry_sdk.testing._server import errors
from kubefoundry_sdk.testing._server.errors import Problem

Schema = Mapping[str, Any]

_IMPLICIT: Final = ("apiVersion", "kind", "metadata")
_BLOCKING: Final = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
"""Reasons that keep the API server from evaluating CEL rules."""

_PREDICATES: Final[Mapping[str, Callable[[dict[str, Any]], bool]]] = {rule.cel: rule.holds for rule in RULES}
"""Rules of our own CRD: there is no interpreter for CEL here."""

_PASSED: Final = frozenset({"", "int32", "int64", "float", "double"})
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def prune(value: Any, schema: Schema, path: str, dropped: list[str], *, resource: bool = False) -> Any:
    """Return the value without undeclared fields, whose paths are added to `dropped`."""
    if isinstance(value, list):
        items = schema.get("items", {})
        return [prune(item, items, f"{path}[{index}]", dropped) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    implicit = _IMPLICIT if resource or schema.get("x-kubernetes-embedded-resource") else ()
    kept = {}
    for name, child in value.items():
        declared = None if name in implicit else _declared(schema, name)
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


def without_nulls(value: Any, schema: Schema) -> Any:
    """Return the value without nulls that the schema neither allows nor replaces by a default."""
    if isinstance(value, list):
        return [without_nulls(item, schema.get("items") or {}) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: without_nulls(child, _declared(schema, name) or {})
        for name, child in value.items()
        if child is not None or _keeps_null(_declared(schema, name))
    }


def _keeps_null(declared: Schema | None) -> bool:
    return declared is None or bool(declared.get("nullable")) or "default" in declared


def defaults_of(schema: Schema) -> Schema:
    """Return the parts of a schema that set defaults, for `defaulted`; empty if there are none."""
    parts = {name: schema[name] for name in ("default", "nullable") if "default" in schema and name in schema}
    # A structural schema has `properties` or `additionalProperties`, not both, so a missing property has no schema.
    properties = {name: defaults_of(declared) for name, declared in (schema.get("properties") or {}).items()}
    if any(properties.values()):
        parts["properties"] = {name: declared for name, declared in properties.items() if declared}
    for name in ("additionalProperties", "items"):
        if isinstance(schema.get(name), Mapping) and (below := defaults_of(schema[name])):
            parts[name] = below
    return parts


def defaulted(value: Any, defaults: Schema) -> Any:
    """Return the value with the defaults of a schema, as `defaults_of` returns them."""
    if not defaults:
        return value
    if isinstance(value, list):
        items = defaults.get("items") or {}
        return [defaulted(_or_default(item, items), items) for item in value]
    if not isinstance(value, dict):
        return value
    whole = dict(value)
    for name, declared in (defaults.get("properties") or {}).items():
        if "default" in declared and name not in whole:
            whole[name] = copy.deepcopy(declared["default"])
    for name, child in whole.items():
        declared = _declared(defaults, name) or {}
        whole[name] = defaulted(_or_default(child, declared), declared)
    return whole


def _declared(schema: Schema, name: str) -> Schema | None:
    """Return the schema of a field; None if the schema says nothing about it."""
    declared = (schema.get("properties") or {}).get(name, schema.get("additionalProperties"))
    return declared if isinstance(declared, Mapping) else None


def _or_default(value: Any, schema: Schema) -> Any:
    if value is None and not schema.get("nullable") and "default" in schema:
        return copy.deepcopy(schema["default"])
    return value


def problems(
    value: Any, schema: Schema, scale: Mapping[str, str] | None = None, *, of_status: bool = False
) -> list[Problem]:
    """Return the reasons for which the API server refuses an object, rules in CEL included.

    Args:
        value: The object.
        schema: The schema of its version.
        scale: The scale subresource of the version, whose paths have to fit.
        of_status: Whether the status subresource is written.

    Raises:
        Refused: A rule or format concerns the object that is not implemented (501).
    """
    found = [
        *(_placed(problem, "status" if of_status else "<nil>") for problem in _problems(value, schema, "")),
        *_scale_problems(value, scale or {}),
        *_duplicates(value, schema, ""),
    ]
    if not _has_rules(schema):
        return found
    if any(problem.reason in _BLOCKING for problem in found):
        text = (
            'Invalid value: "null": some validation rules were not checked because the object was invalid; correct '
            "the existing errors to complete validation"
        )
        return [*found, Problem("FieldValueInvalid", "<nil>", text)]
    return [*found, *_broken_rules(value, schema, "")]


def _problems(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    if value is None and (schema.get("nullable") or not _typed(schema)):
        return
    is_typed = value is not None and structural.has_type(dict(schema), value)
    if not is_typed:
        yield from _type_problems(value, schema, path)
    if "enum" in schema and not any(same(value, allowed) for allowed in schema["enum"]):
        text = (
            f"Unsupported value: {_shown(value)}: supported values: {', '.join(map(_shown, schema['enum']))}"
        )
        yield Problem("FieldValueNotSupported", path, text)
    if is_typed:
        yield from _content_problems(value, schema, path)
    if value is not None:
        yield from _junctor_problems(value, schema, path)


def _scale_problems(obj: Any, scale: Mapping[str, str]) -> Iterator[Problem]:
    """Yield values at the paths of the scale subresource that it cannot show."""
    for name, kind in (("specReplicasPath", int), ("statusReplicasPath", int), ("labelSelectorPath", str)):
        if not (path := scale.get(name)):
            continue
        value, is_there = obj, True
        for step in path.strip(".").split("."):
            if value is None or (isinstance(value, dict) and step not in value):
                is_there = False
                break
            value = value.get(step) if isinstance(value, dict) else False
        fits = not is_there or (isinstance(value, kind) and not isinstance(value, bool))
        if not fits:
            yield Problem("FieldValueInvalid", path, f"Invalid value: 0: {path} accessor error")
        elif is_there and isinstance(value, int) and not 0 <= value < 2**31:
            yield Problem(
                "FieldValueInvalid", path, f"Invalid value: {value}: should be a non-negative integer"
            )


def _typed(schema: Schema) -> bool:
    return "type" in schema or bool(schema.get("x-kubernetes-int-or-string"))


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
        if (declared := _declared(schema, name)) is not None and not (not path and name in _IMPLICIT):
            yield from _problems(child, declared, _join(path, name))


def _list_problems(value: list[Any], schema: Schema, path: str) -> Iterator[Problem]:
    if len(value) > schema.get("maxItems", len(value)):
        yield Problem(
            "FieldValueTooMany", path, f"Too many: {len(value)}: must have at most {schema['maxItems']} items"
        )
    if len(value) < schema.get("minItems", 0):
        yield _out_of_bounds(path, value, f"should have at least {schema['minItems']} items")
    for index, item in enumerate(value):
        yield from _problems(item, schema.get("items") or {}, f"{path}[{index}]")


def _text_problems(value: str, schema: Schema, path: str) -> Iterator[Problem]:
    if len(value) > schema.get("maxLength", len(value)):
        yield Problem(
            "FieldValueTooLong", path, f"Too long: may not be more than {schema['maxLength']} bytes"
        )
    if len(value) < schema.get("minLength", 0):
        yield _out_of_bounds(path, value, f"should be at least {schema['minLength']} chars long")
    pattern = schema.get("pattern")
    if pattern and not structural.regex(pattern).search(value):
        yield _out_of_bounds(path, value, f"should match '{pattern}'")
    name = schema.get("format", "")
    if name == "date-time":
        if not _TIME.fullmatch(value):
            text = (
                f"Invalid value: {_shown(value)}: {path} in body must be of type date-time: {_shown(value)}"
            )
            yield Problem("FieldValueTypeInvalid", path, text)
    elif name == "byte":
        if not _BASE64.fullmatch(value):
            text = f"Invalid value: {_shown(value)}: {path} in body must be of type byte: {_shown(value)}"
            yield Problem("FieldValueTypeInvalid", path, text)
    elif name not in _PASSED:
        raise errors.unknown_feature(f"the format {name} of {path}")


_LIMIT_TEXTS: Final = {
    "minimum": "should be greater than or equal to",
    "maximum": "should be less than or equal to",
    "multipleOf": "should be a multiple of",
}


def _number_problems(value: int | float, schema: Schema, path: str) -> Iterator[Problem]:
    for keyword in structural.broken_limits(schema, value):
        if keyword == "format":
            yield _unplaced(path, f"must be of type integer with format {schema['format']}")
        else:
            yield _out_of_bounds(path, value, f"{_LIMIT_TEXTS[keyword]} {schema[keyword]}")


def _junctor_problems(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    def fits(branch: Schema) -> bool:
        return not any(True for _ in _problems(value, branch, path))

    for branch in schema.get("allOf") or ():
        yield from _problems(value, branch, path)
    if "anyOf" in schema and not any(map(fits, schema["anyOf"])):
        yield _unplaced(path, "must validate at least one schema (anyOf)")
        yield from _problems(value, schema["anyOf"][0], path)
    if "oneOf" in schema and sum(map(fits, schema["oneOf"])) != 1:
        yield _unplaced(path, "must validate one and only one schema (oneOf)")
    if "not" in schema and fits(schema["not"]):
        yield _unplaced(path, "must not validate the schema (not)")


def _unplaced(path: str, text: str) -> Problem:
    """Return a problem for which the API server names no field in the cause."""
    return Problem("FieldValueInvalid", "", f'Invalid value: "": "{path}" {text}')


def _placed(problem: Problem, root: str) -> Problem:
    """Return the problem with the root of what is validated as its field, if it has none."""
    return problem if problem.field else problem._replace(field=root)


def _duplicates(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
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
    for child, declared, below in _children(value, schema, path):
        yield from _duplicates(child, declared, below)


def _children(value: Any, schema: Schema, path: str) -> Iterator[tuple[Any, Schema, str]]:
    """Yield the declared fields of a map or the items of a list, with schema and path."""
    if isinstance(value, dict):
        for name, child in value.items():
            if (declared := _declared(schema, name)) is not None:
                yield child, declared, _join(path, name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield item, schema.get("items") or {}, f"{path}[{index}]"


def _identity(item: Any, schema: Schema) -> Any:
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return item
        case "map" if isinstance(item, dict):
            return {key: item.get(key) for key in schema["x-kubernetes-list-map-keys"] if key in item}
        case _:
            return None


def _has_rules(schema: Any) -> bool:
    if isinstance(schema, list):
        return any(map(_has_rules, schema))
    if not isinstance(schema, Mapping):
        return False
    return "x-kubernetes-validations" in schema or any(map(_has_rules, schema.values()))


def _broken_rules(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    if value is None:
        return
    for rule in schema.get("x-kubernetes-validations") or ():
        holds = _PREDICATES.get(rule["rule"])
        if holds is None:
            raise errors.unknown_feature(
                f"CEL, in which {path or 'the object'} has the rule {rule['rule']!r}"
            )
        if not holds(value):
            text = f"Invalid value: {_shown(value)}: {rule.get('message', '')}"
            yield Problem("FieldValueInvalid", path, text)
    for child, declared, below in _children(value, schema, path):
        yield from _broken_rules(child, declared, below)


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
    return json.dumps(value, ensure_ascii=False)
