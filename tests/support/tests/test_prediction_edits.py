"""Random edits of `make predictions` reach each field of the spec: a new field cannot be left out unnoticed."""

from __future__ import annotations

from typing import Final

from kubefoundry_conformance.fields import FIELDS
from support.predictions.edits import AGGREGATED_EDIT, DISAGGREGATED_EDIT, VALUES

LIKE_THE_OTHER_ROLE: Final = frozenset({"scaling.prefill.gpu.type", "scaling.decode.gpu.count"})
"""Fields of a role that the edits reach for the other role."""


def test_random_edits_reach_each_field() -> None:
    modes = [
        edit.partition("=")[0] for edit in (*AGGREGATED_EDIT, *DISAGGREGATED_EDIT) if not edit.endswith("=")
    ]
    paths = {*VALUES, *modes} - {"scaling"}

    missed = {
        field
        for field in FIELDS
        if not any(
            path == field or path.startswith(f"{field}.") or field.startswith(f"{path}.") for path in paths
        )
    }

    assert missed == LIKE_THE_OTHER_ROLE
