"""Each field of the spec is among the fields that the kit changes: a new field cannot be left out unnoticed."""

from __future__ import annotations

from kubefoundry_conformance.fields import FIELDS
from kubefoundry_conformance.functions.supporting import CHECKED_ELSEWHERE, VALUES


def test_kit_has_a_value_of_each_field() -> None:
    assert set(VALUES) | CHECKED_ELSEWHERE == set(FIELDS)
    assert set(VALUES) & CHECKED_ELSEWHERE == set()
