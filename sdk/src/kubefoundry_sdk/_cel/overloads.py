"""The operand types of CEL's operators: the checks of Kubernetes' type checker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubefoundry_sdk._cel.schema import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    UINT,
    Dynamic,
    ListOf,
    MapOf,
    Record,
    Scalar,
    Type,
)

NUMBERS: Final = (INT, UINT, DOUBLE)


class Mismatch(Exception):
    """The operands do not fit the operator; the text says how."""


def name_of(kind: Type) -> str:
    """Return the name of a type in messages."""
    match kind:
        case Scalar("null_type"):
            return "null"
        case Scalar(name):
            return f"an {name}" if name[0] in "aeio" else f"a {name}"
        case ListOf():
            return "a list"
        case MapOf():
            return "a map"
        case Record():
            return "an object"
    return "a dynamic value"


def fits(actual: Type, expected: Type) -> bool:
    """Check whether a value of one type may stand where another type is expected."""
    return isinstance(actual, Dynamic) or isinstance(expected, Dynamic) or actual == expected


def joined(kinds: Iterable[Type]) -> Type:
    """Return the common type of several values; dynamic if they differ or there are none."""
    types = list(kinds)
    return types[0] if types and all(kind == types[0] for kind in types) else DYN


def comparable(left: Type, right: Type) -> bool:
    """Check whether == can ever be true; Kubernetes refuses other comparisons at compile time."""
    if fits(left, right) or (left in NUMBERS and right in NUMBERS):
        return True
    if isinstance(left, ListOf) and isinstance(right, ListOf):
        return comparable(left.item, right.item)
    return isinstance(left, MapOf | Record) and isinstance(right, MapOf | Record)


def check_relation(operator: str, left: Type, right: Type) -> None:
    """Raise Mismatch unless the operands fit the relation, named as in the grammar (`relation_eq`)."""
    if operator == "relation_in":
        match right:
            case ListOf(item):
                right = item
            case MapOf() | Record():
                right = STRING
            case Scalar():
                raise Mismatch(f"'in' needs a list or a map, this is {name_of(right)}")
    elif operator not in ("relation_eq", "relation_ne"):
        for kind in (left, right):
            if kind not in (*NUMBERS, STRING, BOOL, DYN):
                raise Mismatch(f"{name_of(kind)} has no order")
    if not comparable(left, right):
        hint = "; ask with has() whether a field is there" if NULL in (left, right) else ""
        raise Mismatch(f"{name_of(left)} is never equal to {name_of(right)}{hint}")


def arithmetic(operator: str, left: Type, right: Type) -> Type:
    """Return the type of the result of an arithmetic operation. Raise Mismatch if the operands do not fit it.

    `operator` is its name in the grammar, such as `addition_add`.
    """
    for kind in (left, right):
        if not _is_operand(operator, kind):
            raise Mismatch(f"{name_of(kind)} does not support this operator")
    if isinstance(left, Dynamic) or isinstance(right, Dynamic):
        return right if isinstance(left, Dynamic) else left
    if isinstance(left, ListOf) and isinstance(right, ListOf):
        return joined((left, right))
    if left != right:
        raise Mismatch(f"no arithmetic between {name_of(left)} and {name_of(right)}")
    return left


def _is_operand(operator: str, kind: Type) -> bool:
    if kind in NUMBERS:
        return (operator, kind) != ("multiplication_mod", DOUBLE)
    is_addable = kind == STRING or isinstance(kind, ListOf)
    return isinstance(kind, Dynamic) or (is_addable and operator == "addition_add")
