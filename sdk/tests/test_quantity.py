from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._api import quantity
from kubefoundry_sdk._api.formats import QUANTITY


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
def test_quantity_is_parsed_exactly(text: int | str, value: Fraction | int) -> None:
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
def test_invalid_quantity_is_rejected(text: Any) -> None:
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
def test_quantity_unit_scales_its_number(number: int, unit: str) -> None:
    assert quantity.parse(f"{number}{unit}") == number * quantity.parse(f"1{unit}")


@pytest.mark.parametrize(
    ("amount", "parts", "smallest", "part"),
    [
        ("64Gi", 2, quantity.BYTE, "32Gi"),
        ("1Gi", 4, quantity.BYTE, "256Mi"),
        ("100Gi", 3, quantity.BYTE, "35791394134"),
        ("1.5Gi", 1, quantity.BYTE, "1536Mi"),
        (7, 2, quantity.MILLICORE, "3500m"),
        ("1", 3, quantity.MILLICORE, "334m"),
        ("1e3", 2, quantity.BYTE, "500"),
        ("1k", 1, quantity.BYTE, "1k"),
        ("0", 5, quantity.BYTE, "0"),
        ("1n", 2, quantity.BYTE, "1"),
        ("9E99", 1, quantity.BYTE, str(2**63 - 1)),
    ],
)
def test_share_is_rounded_up_in_the_unit_of_the_amount(
    amount: int | str, parts: int, smallest: Fraction, part: str
) -> None:
    assert quantity.share(amount, parts, smallest=smallest) == part


@given(
    st.from_regex(QUANTITY, fullmatch=True).filter(lambda text: len(text) <= 64) | st.integers(0, 2**64),
    st.integers(1, 10**6),
    st.sampled_from([quantity.BYTE, quantity.MILLICORE]),
)
def test_share_is_smallest_quantity_that_suffices(amount: int | str, parts: int, smallest: Fraction) -> None:
    part = quantity.parse(quantity.share(amount, parts, smallest=smallest))

    counted = min(quantity.parse(amount), Fraction(quantity.LARGEST))
    assert part * parts >= counted, "the parts are at least the amount"
    assert (part - smallest) * parts < counted, "a smaller part would be too small"
    assert (part / smallest).denominator == 1


@pytest.mark.parametrize(("amount", "parts"), [("1Gi", 0), ("1Gi", -1), ("much", 2)])
def test_share_of_nonsense_is_rejected(amount: str, parts: int) -> None:
    with pytest.raises(ValueError, match=r"at least 1 part|is not a quantity"):
        quantity.share(amount, parts)
