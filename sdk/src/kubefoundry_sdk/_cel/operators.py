"""CEL's operators on cel-python's values, where cel-python 0.5 departs from the language.

Equality is defined across all types, and numbers compare across int, uint and double (cel-spec langdef, "Equality"
and "Ordering"). Arithmetic takes two operands of one type; a bool is not a number. Errors are values, as in
cel-python: its evaluator turns TypeError into "no matching overload".
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from celpy.celtypes import (
    BoolType,
    DoubleType,
    IntType,
    ListType,
    MapType,
    StringType,
    UintType,
)
from celpy.evaluation import CELEvalError

Spend = Callable[[int], None]
"""Charges steps to the budget of an evaluation. Raises BudgetSpent if no steps are left."""

ITEMS_PER_STEP: Final = 8
"""Items that are compared in one step."""

_NUMBERS: Final = (IntType, UintType, DoubleType)


def is_number(value: Any) -> bool:
    """Check whether the value is an int, uint or double."""
    return isinstance(value, _NUMBERS)


def equal(left: Any, right: Any, spend: Spend) -> bool:
    """Compare by CEL's ==: values of different kinds differ, numbers are equal by value; never an error."""
    if is_number(left) and is_number(right):
        return _order(left, right) == 0
    for kind, equal_parts in ((ListType, _equal_items), (MapType, _equal_entries)):
        if isinstance(left, kind) and isinstance(right, kind):
            spend(len(left) // ITEMS_PER_STEP)
            return len(left) == len(right) and equal_parts(left, right, spend)
    if isinstance(left, type) or isinstance(right, type):
        return left is right
    return type(left) is type(right) and bool(left == right)


def _equal_items(left: Any, right: Any, spend: Spend) -> bool:
    return all(equal(a, b, spend) for a, b in zip(left, right, strict=True))


def _equal_entries(left: Any, right: Any, spend: Spend) -> bool:
    return all(
        (other := entry(right, key)) is not None and equal(value, other[0], spend)
        for key, value in left.items()
    )


def entry(container: MapType, key: Any) -> tuple[Any] | None:
    """Return the value under a key, in a tuple; numeric keys match by value, and a bool is not a number."""
    if isinstance(key, DoubleType) and not key.is_integer():
        return None
    for candidate in _same_keys(key):
        try:
            if dict.__contains__(container, candidate):
                return (dict.__getitem__(container, candidate),)
        except TypeError:
            # cel-python's int and uint have the same hash, but cannot be compared
            continue
    return None


def _same_keys(key: Any) -> list[Any]:
    if not is_number(key):
        return [key]
    number = int(key)
    ranges = ((IntType, -(2**63), 2**63), (UintType, 0, 2**64))
    return [kind(number) for kind, least, end in ranges if least <= number < end]


def compare(op: Callable[[int, int], bool], left: Any, right: Any) -> BoolType:
    """Compare by CEL's ordering: `op` compares the order of the operands (-1, 0 or 1) with 0. False for a NaN.

    Raise TypeError if the kinds of the operands differ, or have no order.
    """
    if is_number(left) and is_number(right):
        order = _order(left, right)
        return BoolType(order is not None and op(order, 0))
    if type(left) is type(right) and isinstance(left, (StringType, BoolType)):
        return BoolType(op((left > right) - (left < right), 0))
    raise TypeError("no ordering")


def _order(left: Any, right: Any) -> int | None:
    """Return -1, 0 or 1; None if a NaN is involved. Python compares int and float exactly."""
    a, b = _plain(left), _plain(right)
    if a == b:
        return 0
    return -1 if a < b else 1 if a > b else None


def _plain(value: Any) -> int | float:
    return float(value) if isinstance(value, DoubleType) else int(value)


def member_of(item: Any, container: Any, spend: Spend) -> BoolType:
    """Evaluate CEL's `in`: check for an element of a list or a key of a map.

    Raise TypeError if `container` is neither, or if no key can have the type of `item`.
    """
    if isinstance(container, ListType):
        spend(len(container) // ITEMS_PER_STEP)
        return BoolType(any(equal(item, each, spend) for each in container))
    if isinstance(container, MapType):
        if not isinstance(item, (StringType, BoolType, *_NUMBERS)):
            raise TypeError("no key of that kind")
        return BoolType(entry(container, item) is not None)
    raise TypeError("no container")


def index(container: Any, key: Any) -> Any:
    """Return `container[key]`.

    Raise KeyError if the map does not have the key, IndexError if the list is shorter, and TypeError if `container`
    has no index or `key` is of a wrong type.
    """
    if isinstance(key, CELEvalError):
        return key
    if isinstance(container, CELEvalError):
        return container
    if isinstance(container, MapType) and isinstance(key, (StringType, BoolType, *_NUMBERS)):
        value = entry(container, key)
        if value is None:
            raise KeyError(key)
        return value[0]
    if isinstance(container, ListType) and is_number(key):
        if _plain(key) != int(key):
            raise TypeError("a position is a whole number")
        if not 0 <= int(key) < len(container):
            raise IndexError(key)
        return container[int(key)]
    raise TypeError("no container")


def _arithmetic(op: Callable[[Any, Any], Any], kinds: tuple[type, ...]) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        for operand in (left, right):
            if isinstance(operand, CELEvalError):
                return operand
        if type(left) is not type(right) or not isinstance(left, kinds):
            raise TypeError("no overload")
        kind: Any = type(left)
        return kind(op(left, right))

    return apply


def _divide(left: Any, right: Any) -> Any:
    """Divide. cel-python returns +Infinity for any double divided by zero."""
    if isinstance(right, DoubleType) and right == 0.0:
        sign = math.copysign(1.0, left) * math.copysign(1.0, right)
        return math.nan if left == 0.0 or math.isnan(left) else sign * math.inf
    return operator.truediv(left, right)


def _negate(value: Any) -> Any:
    if isinstance(value, CELEvalError):
        return value
    if not isinstance(value, (IntType, DoubleType)):
        raise TypeError("no overload")
    return type(value)(-value)


ARITHMETIC: Final[Mapping[str, Callable[..., Any]]] = {
    "_+_": _arithmetic(operator.add, (*_NUMBERS, StringType, ListType)),
    "_-_": _arithmetic(operator.sub, _NUMBERS),
    "_*_": _arithmetic(operator.mul, _NUMBERS),
    "_/_": _arithmetic(_divide, _NUMBERS),
    "_%_": _arithmetic(operator.mod, (IntType, UintType)),
    "-_": _negate,
    "_[_]": index,
}
"""By the names that cel-python's evaluator looks up."""
