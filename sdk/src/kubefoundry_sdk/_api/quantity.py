"""Quantities of resources: exact values of amounts such as "16Gi", "500m" or 4.

Stricter than `kubernetes.utils.quantity`, which accepts `1K`, `1_000`, ` 1 `, `NaN`, `1e3Gi` and the like. Source:
the quantity grammar of apimachinery's `resource.Quantity`, without signs and with an exponent of at most two digits,
because no resource is negative and none needs more.
"""

from __future__ import annotations

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


def same(amount: object, other: object) -> bool:
    """Check whether both are quantities of the same amount, as `1Gi` and `1024Mi` are."""
    try:
        return parse(amount) == parse(other)
    except ValueError:
        return False
