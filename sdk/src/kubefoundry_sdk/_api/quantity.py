"""Quantities of resources: exact values of amounts such as "16Gi", "500m" or 4.

Stricter than `kubernetes.utils.quantity`, which accepts `1K`, `1_000`, ` 1 `, `NaN`, `1e3Gi` and the like. Source:
the quantity grammar of apimachinery's `resource.Quantity`, without signs and with an exponent of at most two digits,
because no resource is negative and none needs more.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Final

from kubefoundry_sdk._api.formats import QUANTITY

_FORM: Final = re.compile(QUANTITY)
_MAX_LENGTH: Final = 64

_UNITS: Final[dict[str, Fraction]] = {
    "": Fraction(1),
    **{
        unit: Fraction(10) ** power
        for unit, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
    },
    **{f"{unit}i": Fraction(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}


_BINARY: Final = (*(f"{unit}i" for unit in "EPTGMK"), "", "m", "u", "n")
_DECIMAL: Final = (*"EPTGMk", "", "m", "u", "n")

LARGEST: Final = 2**63 - 1
"""The largest amount. Kubernetes reads every larger one as this (apimachinery's `resource.Quantity`)."""

BYTE: Final = Fraction(1)
"""The smallest amount of memory: the API server warns of a part of a byte."""

MILLICORE: Final = Fraction(1, 1000)
"""The smallest amount of CPU."""


def parse(quantity: object) -> Fraction:
    """Return the exact amount: bytes for memory, cores for CPU.

    Raises:
        ValueError: It is neither a non-negative integer nor a text in Kubernetes' grammar.
    """
    if isinstance(quantity, int) and not isinstance(quantity, bool) and quantity >= 0:
        return Fraction(quantity)
    match = _FORM.fullmatch(quantity) if isinstance(quantity, str) and len(quantity) <= _MAX_LENGTH else None
    if match is None:
        raise ValueError(f'{quantity!r} is not a quantity: write it like "16Gi", "500m" or 4')
    number, suffix = match[1], match[2] or ""
    whole, _, decimals = number.partition(".")
    value = Fraction(int(whole + decimals), 10 ** len(decimals))
    if suffix in _UNITS:
        return value * _UNITS[suffix]
    return value * Fraction(10) ** int(suffix[1:])


def stored(quantity: object) -> Fraction:
    """Return the amount as Kubernetes stores it: at most LARGEST.

    Raises:
        ValueError: See `parse`.
    """
    return min(parse(quantity), Fraction(LARGEST))


def same(amount: object, other: object) -> bool:
    """Check whether both are quantities of the same amount, as `1Gi` and `1024Mi` are."""
    try:
        return parse(amount) == parse(other)
    except ValueError:
        return False


def share(amount: object, parts: int, *, smallest: Fraction = BYTE) -> str:
    """Divide an amount exactly, and return a part, rounded up.

    The text has the unit of the amount, or the largest smaller unit of the same kind that needs no decimals.

    Args:
        amount: A quantity, such as "64Gi" or 4.
        parts: The number of equal parts, at least 1.
        smallest: The part is a multiple of this: `BYTE` for memory, `MILLICORE` for CPU.

    Returns:
        The smallest quantity of which `parts` are at least the amount.

    Raises:
        ValueError: The amount is not a quantity, or there is no part.
    """
    if parts < 1:
        raise ValueError(f"an amount has at least 1 part, not {parts}")
    part = math.ceil(stored(amount) / parts / smallest) * smallest
    for unit in _units_from(str(amount)):
        number = part / _UNITS[unit]
        if number.denominator == 1:
            return f"{number}{unit}"
    raise ValueError(f"{smallest} is not a multiple of a nano unit")


def _units_from(text: str) -> tuple[str, ...]:
    """Return the unit of a quantity, at least 1, and the smaller ones of its kind, the largest first."""
    match = _FORM.fullmatch(text)
    unit = match[2] or "" if match else ""
    kind = _BINARY if unit.endswith("i") else _DECIMAL
    # An exponent, as in 1e3, is no unit.
    return kind[kind.index(unit if _UNITS.get(unit, 0) > 1 else "") :]
