"""What a CRD declares decides how it is written; no CRD can crash it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk import Schema, UnsupportedSchema
from kubefoundry_sdk.crd import Fields, by_fields, declared

KNOWN = {
    "v2": Fields(("spec.model", "spec.parts[].name", "spec.services{}.replicas"), {"pause": "spec.pause"}),
    "v1": Fields(("spec.model",), {"pause": "spec.pause"}, {"pause": "pausing"}),
}

NOTHING_KNOWN: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("v1"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["spec", "versions", "name", "served", "schema", "openAPIV3Schema", "properties", "items"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


def tree(*paths: str) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path in paths:
        at = root
        for step in path.split("."):
            name = step.rstrip("[]{}")
            at = at.setdefault("properties", {}).setdefault(name, {})
            if step.endswith("[]"):
                at = at.setdefault("items", {})
            elif step.endswith("{}"):
                at = at.setdefault("additionalProperties", {})
    return root


def crd(**versions: dict[str, Any]) -> dict[str, Any]:
    listed = [
        {"name": name, "served": True, "schema": {"openAPIV3Schema": root.pop("tree")}, **root}
        for name, root in versions.items()
    ]
    return {"spec": {"group": "example.com", "versions": listed}}


FULL = ("spec.model", "spec.parts[].name", "spec.services{}.replicas", "spec.pause")


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(
            crd(v2={"tree": tree(*FULL)}), Schema("example.com/v2", frozenset({"pause"})), id="all of it"
        ),
        pytest.param(
            crd(v2={"tree": tree(*FULL[:3])}), Schema("example.com/v2"), id="an optional one absent"
        ),
        pytest.param(
            crd(v1={"tree": tree("spec.model")}),
            Schema("example.com/v1", lost=("pausing",)),
            id="what is lost without it",
        ),
        pytest.param(
            crd(v1={"tree": tree(*FULL), "storage": True}, v2={"tree": tree(*FULL)}),
            Schema("example.com/v1", frozenset({"pause"})),
            id="the stored version",
        ),
        pytest.param(
            crd(v1={"tree": tree(*FULL)}, v2={"tree": tree(*FULL)}),
            Schema("example.com/v2", frozenset({"pause"})),
            id="the best one, where none is stored",
        ),
        pytest.param(
            crd(v2={"tree": tree("spec.model")}),
            UnsupportedSchema(("spec.parts[].name", "spec.services{}.replicas")),
            id="what is missing",
        ),
        pytest.param(
            crd(v3={"tree": tree(*FULL)}),
            UnsupportedSchema(("example.com/v2", "example.com/v1")),
            id="no known version",
        ),
    ],
)
def test_upstream_version_has_its_features(
    document: dict[str, Any], expected: Schema | UnsupportedSchema
) -> None:
    assert by_fields(KNOWN, document) == expected


@given(NOTHING_KNOWN)
def test_probe_by_fields_survives_any_crd(spec: Any) -> None:
    assert isinstance(by_fields(KNOWN, {"spec": spec}), Schema | UnsupportedSchema)


def test_items_of_a_list_may_be_left_out() -> None:
    assert declared(tree("spec.parts[].name"), "spec.parts.name") is not None
    assert declared(tree("spec.parts[].name"), "spec.parts.size") is None
