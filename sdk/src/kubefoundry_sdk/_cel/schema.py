"""The variables of a rule: the types of `spec` and `metadata`, and CEL values of these types from JSON.

The types of `spec` come from the CRD's schema, so rules can use a new field of a ModelDeployment at once. Maps of the
API (labels, arguments) are typed by their values; parts that keep unknown fields are dynamic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from celpy import celtypes
from celpy.adapter import json_to_cel

from kubefoundry_sdk._api import structure
from kubefoundry_sdk._api.structure import Schema


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without parts, by its CEL name."""

    name: str


@dataclass(frozen=True, slots=True)
class Dynamic:
    """A value whose type is known only when the rule runs."""


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list whose items have one type."""

    item: Type


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map from strings to values of one type."""

    value: Type


@dataclass(frozen=True, slots=True)
class Record:
    """An object with declared fields, by their JSON names."""

    fields: Mapping[str, Type]


Type = Scalar | Dynamic | ListOf | MapOf | Record

BOOL: Final = Scalar("bool")
INT: Final = Scalar("int")
UINT: Final = Scalar("uint")
DOUBLE: Final = Scalar("double")
STRING: Final = Scalar("string")
NULL: Final = Scalar("null_type")
TYPE: Final = Scalar("type")
QUANTITY: Final = Scalar("quantity")
DYN: Final = Dynamic()

_SCALARS: Final[Mapping[object, Scalar]] = {
    "boolean": BOOL,
    "integer": INT,
    "number": DOUBLE,
    "string": STRING,
}


def type_of(schema: Schema) -> Type:
    """Return the CEL type of the values of a structural schema. An integer or string is dynamic."""
    match schema.get("type"):
        case "object" if "properties" in schema:
            return record_of(schema)
        case "object":
            return MapOf(type_of(schema.get("additionalProperties") or {}))
        case "array":
            return ListOf(type_of(schema["items"]))
        case scalar:
            return _SCALARS.get(scalar, DYN)


def record_of(schema: Schema) -> Record:
    """Return the fields of a structural schema of type object."""
    return Record({name: type_of(field) for name, field in schema["properties"].items()})


VARIABLES: Final[Mapping[str, Type]] = {
    "spec": record_of(structure.of_spec("modeldeployment")),
    "metadata": Record(
        {"name": STRING, "namespace": STRING, "labels": MapOf(STRING), "annotations": MapOf(STRING)}
    ),
}
"""The variables of a rule (contract §5)."""


def to_cel(value: Any, declared: Type) -> Any:
    """Return a JSON value as a CEL value of the declared type.

    An integer field stays an integer if JSON has `2.0` (sources §6.1). Null and undeclared fields are left out, as
    the API server prunes them.
    """
    match declared, value:
        case Record(fields), dict():
            return celtypes.MapType(
                {
                    celtypes.StringType(name): to_cel(part, fields[name])
                    for name, part in value.items()
                    if name in fields and part is not None
                }
            )
        case MapOf(of), dict():
            return celtypes.MapType({celtypes.StringType(k): to_cel(v, of) for k, v in value.items()})
        case ListOf(of), list():
            return celtypes.ListType([to_cel(item, of) for item in value])
        case Scalar("int"), float() if value.is_integer():
            return celtypes.IntType(int(value))
        case Scalar("double"), int() if not isinstance(value, bool):
            return celtypes.DoubleType(value)
        case _:
            return json_to_cel(value)
