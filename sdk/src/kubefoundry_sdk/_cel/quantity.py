"""Kubernetes quantities in rules: `quantity(spec.resources.memory).isGreaterThan(quantity('16Gi'))`.

As in Kubernetes' CEL quantity library, but an integer is accepted, too, because the fields are int-or-string.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from celpy.celtypes import BoolType, IntType, StringType

from kubefoundry_sdk._api.quantity import parse as parse_quantity


class Quantity:
    """An exact amount; a CEL type of its own."""

    __slots__ = ("amount",)

    def __init__(self, amount: Fraction) -> None:
        self.amount = amount

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.amount == other.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    def __repr__(self) -> str:
        return f"Quantity({self.amount})"


def parse(value: Any) -> Quantity:
    """Return `quantity(x)`. Raise ValueError for a wrong string, TypeError for neither a string nor an integer."""
    if isinstance(value, IntType):
        return Quantity(parse_quantity(int(value)))
    if not isinstance(value, StringType):
        raise TypeError("no overload of quantity")
    return Quantity(parse_quantity(str(value)))


def is_quantity(value: Any) -> BoolType:
    """Evaluate `isQuantity(x)`. Raise TypeError for a value that is neither a string nor an integer."""
    try:
        parse(value)
    except ValueError:
        return BoolType(False)
    return BoolType(True)


def compare(left: Any, right: Any) -> IntType:
    """Evaluate `a.compareTo(b)`: return -1, 0 or 1 if `left` is less than, equal to or greater than `right`."""
    a, b = _amount(left), _amount(right)
    return IntType((a > b) - (a < b))


def greater(left: Any, right: Any) -> BoolType:
    """Evaluate `a.isGreaterThan(b)`."""
    return BoolType(_amount(left) > _amount(right))


def less(left: Any, right: Any) -> BoolType:
    """Evaluate `a.isLessThan(b)`."""
    return BoolType(_amount(left) < _amount(right))


def is_integer(value: Any) -> BoolType:
    """Evaluate `a.isInteger()`: check whether the amount is whole and fits 64 bits."""
    amount = _amount(value)
    return BoolType(amount.denominator == 1 and -(2**63) <= amount < 2**63)


def as_integer(value: Any) -> IntType:
    """Return the amount as an int. Raise ValueError if it is not an integer, or does not fit 64 bits."""
    amount = _amount(value)
    if amount.denominator != 1:
        raise ValueError("the quantity is not an integer")
    return IntType(int(amount))


def _amount(value: Any) -> Fraction:
    if not isinstance(value, Quantity):
        raise TypeError("no overload: a quantity is needed")
    return value.amount
