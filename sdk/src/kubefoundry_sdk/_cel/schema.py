"""The variables of a rule: the types of `spec` and `metadata`, and CEL values of these types from JSON.

The types of `spec` come from the SDK's models, so rules can use a new field of a ModelDeployment at once. Maps of the
API (labels, arguments) are typed by their values; parts that keep unknown fields are dynamic.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from celpy import celtypes
from celpy.adapter import json_to_cel
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kubefoundry_sdk._api.fields import ItemsLike
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec


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

_SCALARS: Final[Mapping[Any, Scalar]] = {bool: BOOL, int: INT, float: DOUBLE, str: STRING}


def type_of(annotation: Any) -> Type:
    """Return the CEL type of a Python annotation of the SDK's models; unions of several types are dynamic."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return record_of(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_of(arguments[0])
    if origin is Literal:
        return _same(tuple(map(type_of, map(type, arguments))))
    if origin in (Union, types.UnionType):
        return _same(tuple(type_of(part) for part in arguments if part is not types.NoneType))
    if origin in (list, tuple):
        return ListOf(type_of(arguments[0]))
    if origin in (dict, Mapping):
        return MapOf(type_of(arguments[1]))
    return DYN


def record_of(model: type[BaseModel]) -> Record:
    """Return the fields of a model by their JSON names."""
    return Record({field.alias or name: _field_type(field) for name, field in model.model_fields.items()})


def _field_type(field: FieldInfo) -> Type:
    for mark in field.metadata:
        if isinstance(mark, ItemsLike):
            return ListOf(record_of(mark.model))
    return type_of(field.annotation)


def _same(candidates: tuple[Type, ...]) -> Type:
    return candidates[0] if all(part == candidates[0] for part in candidates) else DYN


VARIABLES: Final[Mapping[str, Type]] = {
    "spec": record_of(ModelDeploymentSpec),
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
