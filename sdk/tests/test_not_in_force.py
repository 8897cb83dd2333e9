"""The values of an accepted apply that admission took back or removed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._provider.write import drift, manifest
from kubefoundry_sdk._provider.write.admission import Admission, NotInForce, not_in_force
from kubefoundry_sdk._provider.write.helpers import mark
from kubefoundry_sdk.testing import deployment

MODEL = deployment({"model": {"id": "org/model"}, "engine": {"type": "vllm"}}, "m", "n")


def dressed(spec: dict[str, Any]) -> Any:
    engine = {"apiVersion": "example.com/v1", "kind": "Engine", "metadata": {"name": "m"}, "spec": spec}
    return manifest.with_ownership(engine, MODEL, "example")


def stored_as(applied: Any, **spec: Any) -> Any:
    """Return the object as the API server stores it; None removes a field."""
    stored = copy.deepcopy(applied)
    stored["spec"] = {key: value for key, value in (stored["spec"] | spec).items() if value is not None}
    return stored


@pytest.mark.parametrize(
    ("before", "edit", "stored", "expected"),
    [
        pytest.param({"image": "a"}, {"image": "b"}, {}, None, id="all stored"),
        pytest.param({"image": "a"}, {"image": "b"}, {"image": "mirror/b"}, None, id="changed"),
        pytest.param(
            {"image": "a"},
            {"image": "b"},
            {"image": "a"},
            NotInForce(("spec.image",), (), is_mixed=False),
            id="all taken back",
        ),
        pytest.param(
            {"image": "a", "n": 1},
            {"image": "b", "n": 2},
            {"image": "a"},
            NotInForce(("spec.image",), (), is_mixed=True),
            id="a part taken back",
        ),
        pytest.param(
            {"image": "a", "old": 1},
            {"image": "b"},
            {"image": "a"},
            NotInForce(("spec.image",), (), is_mixed=True),
            id="only the removal of a field is in force",
        ),
        pytest.param(
            {"image": "a", "n": 1},
            {"image": "a", "n": 2},
            {"image": None},
            NotInForce((), ("spec.image",), is_mixed=True),
            id="a value beside the edit removed",
        ),
        pytest.param(
            {"image": "a"},
            {"image": "a", "args": ["x"]},
            {"args": None},
            NotInForce(("spec.args",), (), is_mixed=False),
            id="an added value taken back",
        ),
        pytest.param(
            {"n": 1}, {"n": 2, "hostNetwork": False}, {"hostNetwork": None}, None, id="false omitted"
        ),
        pytest.param({"cpu": "1"}, {"cpu": "2", "zero": 0}, {"zero": None}, None, id="zero omitted"),
    ],
)
def test_values_not_in_force_are_found(
    before: dict[str, Any], edit: dict[str, Any], stored: dict[str, Any], expected: NotInForce | None
) -> None:
    applied = dressed(edit)

    assert not_in_force(applied, dressed(before), stored_as(applied, **stored)) == expected


def test_mirrored_image_is_no_edit_taken_back() -> None:
    applied = dressed({"image": "a", "n": 2})
    live = stored_as(dressed({"image": "a", "n": 1}), image="mirror/a")

    assert not_in_force(applied, live, stored_as(applied, image="mirror/a")) is None


@pytest.mark.parametrize(
    ("stored", "removed"),
    [
        ({"image": None}, ("spec.image",)),
        ({"image": "mirror/a"}, ()),
        ({"args": []}, ("spec.args",)),
    ],
)
def test_value_removed_from_a_new_object_is_found(stored: dict[str, Any], removed: tuple[str, ...]) -> None:
    applied = dressed({"image": "a", "args": ["x"]})

    lacking = not_in_force(applied, None, stored_as(applied, **stored))

    assert (lacking.removed if lacking else ()) == removed


def test_removed_value_counts_as_changed_until_stored() -> None:
    applied, admission = dressed({"image": "a", "n": 1}), Admission()
    stored = stored_as(applied, image=None, n=2)
    admission.note(applied, stored)

    changed = admission.changed_by_others(
        mark(applied), manifest.content(applied), {"spec.image": None, "spec.n": 2}
    )

    assert changed == ("spec.image",)
    assert admission.without_removed(mark(applied), changed) == ()
    assert admission.text([mark(applied)]) == (
        "the cluster's admission changed spec.n of Engine 'm', and this is not reverted"
    )


SCALARS: Any = st.sampled_from(["", 0, False, "a", 1, None])
VALUES: Any = st.recursive(
    SCALARS,
    lambda parts: (
        st.lists(parts, max_size=3) | st.dictionaries(st.sampled_from(["name", "a", "b"]), parts, max_size=3)
    ),
    max_leaves=8,
)
SPECS: Any = st.dictionaries(st.sampled_from(["args", "limits"]), VALUES, max_size=2)


def test_item_with_an_empty_name_is_noted_when_removed() -> None:
    applied, admission = dressed({"args": [{"name": ""}]}), Admission()

    admission.note(applied, stored_as(applied, args=[]))

    assert admission.without_removed(mark(applied), ["spec.args"]) == ()


@given(SPECS, SPECS)
def test_any_stored_spec_is_noted(sent: dict[str, Any], stored: dict[str, Any]) -> None:
    applied, admission = dressed(sent), Admission()
    answer = {**copy.deepcopy(applied), "spec": stored}

    admission.note(applied, answer)

    changes = drift.values(manifest.content(applied), answer)
    by_others = admission.changed_by_others(mark(applied), manifest.content(applied), changes)
    assert admission.without_removed(mark(applied), by_others) == ()
