from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._api import quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (0, 0),
        (4, 4),
        ("4", 4),
        ("1.", 1),
        (".5", Fraction(1, 2)),
        ("1.5", Fraction(3, 2)),
        ("500m", Fraction(1, 2)),
        ("100u", Fraction(1, 10_000)),
        ("1n", Fraction(1, 10**9)),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1.5Gi", 3 * 2**29),
        ("1M", 10**6),
        ("1T", 10**12),
        ("1P", 10**15),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("1e3", 1000),
        ("1E3", 1000),
        ("12E-2", Fraction(12, 100)),
        ("1e+2", 100),
        ("0.000000000000000000001", Fraction(1, 10**21)),
    ],
)
def test_a_quantity_is_read_exactly(text: int | str, value: Fraction | int) -> None:
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "Gi",
            ".",
            "1K",
            "1_000",
            " 1 ",
            "1 Gi",
            "1Gi ",
            "1Gi\n",
            "NaN",
            "Infinity",
            "1e3Gi",
            "1E2E",
        ),
        *("True", "١", "1٫5", "1gi", "1GI", "1.2.3", "+1", "-1", "1e", "1e999", "0x10", "1Gib", "9" * 65),
        *(True, False, -1, 1.5, 1.0, None, [1]),
    ],
)
def test_what_only_looks_like_a_quantity_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantity.parse(text)


@pytest.mark.parametrize(
    ("amount", "other", "same"),
    [
        ("1Gi", "1024Mi", True),
        (1, "1000m", True),
        ("1e3", "1k", True),
        ("1Gi", "1G", False),
        ("0", "0Gi", True),
        ("0.1", "100m", True),
    ],
)
def test_amounts_are_compared_not_texts(amount: int | str, other: int | str, same: bool) -> None:
    assert quantity.same(amount, other) is same


@given(st.integers(0, 10**20), st.sampled_from(["m", "k", "Mi", "Gi", "Ti"]))
def test_a_unit_scales_a_number(number: int, unit: str) -> None:
    assert quantity.parse(f"{number}{unit}") == number * quantity.parse(f"1{unit}")
