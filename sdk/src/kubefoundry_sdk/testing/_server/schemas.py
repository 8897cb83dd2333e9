"""A CRD's structural schema as the API server applies it: nulls, defaults, and validation with rules in CEL."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from kubefoundry_sdk._api.rules import RULES
from kubefoundry_sdk.testing import structural
from kubefoundry_sdk.testing._server import errors
from kubefoundry_sdk.testing._server.errors import Problem
from kubefoundry_sdk.testing.structural import children, declared_field

Schema = Mapping[str, Any]

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

_KNOWN_FORMATS: Final = frozenset({"", "byte", "date-time", "int32", "int64", "float", "double"})


def without_nulls(value: Any, schema: Schema) -> Any:
    """Return the value without nulls that the schema neither allows nor replaces by a default."""
    if isinstance(value, list):
        return [without_nulls(item, schema.get("items") or {}) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: without_nulls(child, declared_field(schema, name) or {})
        for name, child in value.items()
        if child is not None or _keeps_null(declared_field(schema, name))
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
        declared = declared_field(defaults, name) or {}
        whole[name] = defaulted(_or_default(child, declared), declared)
    return whole


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
        *(
            # a problem that names no field concerns the root of what is validated
            problem if problem.field else problem._replace(field="status" if of_status else "<nil>")
            for problem in structural.problems(value, schema, "")
        ),
        *_scale_problems(value, scale or {}),
        *structural.duplicates(value, schema, ""),
    ]
    _check_formats(value, schema, "")
    if not _has_rules(schema):
        return found
    if any(problem.reason in _BLOCKING for problem in found):
        text = (
            'Invalid value: "null": some validation rules were not checked because the object was invalid; correct '
            "the existing errors to complete validation"
        )
        return [*found, Problem("FieldValueInvalid", "<nil>", text)]
    return [*found, *_broken_rules(value, schema, "")]


def _check_formats(value: Any, schema: Schema, path: str) -> None:
    """Raise Refused (501) for a text with a format that is not implemented here."""
    branches = (schema[name] for name in ("allOf", "anyOf", "oneOf") if name in schema)
    for part in (schema, *chain.from_iterable(branches), schema.get("not") or {}):
        if isinstance(value, str) and part.get("format", "") not in _KNOWN_FORMATS:
            raise errors.unknown_feature(f"the format {part['format']} of {path}")
        for child, declared, below in children(value, part, path):
            _check_formats(child, declared, below)


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
            text = f"Invalid value: {json.dumps(value, ensure_ascii=False)}: {rule.get('message', '')}"
            yield Problem("FieldValueInvalid", path, text)
    for child, declared, below in children(value, schema, path):
        yield from _broken_rules(child, declared, below)
