"""Rebasing the user's changes onto the applied manifest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider.write.change import identity_changed, rebase

LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2)
NAMED = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("xyz"), "value": st.integers(0, 2)}),
    unique_by=lambda item: item["name"],
    max_size=3,
)
MANIFESTS = st.recursive(
    LEAVES | NAMED,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(applied=MANIFESTS, render=MANIFESTS)
def test_without_a_change_by_the_user_everything_stays(applied: Any, render: Any) -> None:
    assert rebase(applied, render, render) == applied


@given(old=MANIFESTS, new=MANIFESTS)
def test_change_by_the_same_provider_gives_the_new_render(old: Any, new: Any) -> None:
    # as text: 1 and true are one to Python, and two to the API server
    assert as_text(rebase(old, old, new)) == as_text(new)


def as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def container(name: str, image: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": image, **more}


@pytest.mark.parametrize(
    ("applied", "old", "new", "expected"),
    [
        pytest.param(
            {"image": "v1", "replicas": 1},
            {"image": "v2", "replicas": 1},
            {"image": "v2", "replicas": 3},
            {"image": "v1", "replicas": 3},
            id="a newer default image stays out when the user scales",
        ),
        pytest.param(
            {"containers": [container("main", "v1")]},
            {"containers": [container("main", "v2")]},
            {"containers": [container("main", "v2", env=[{"name": "A", "value": "1"}])]},
            {"containers": [container("main", "v1", env=[{"name": "A", "value": "1"}])]},
            id="items of a list are matched by their name",
        ),
        pytest.param(
            {"groups": [{"groupName": "gpu", "image": "v1", "replicas": 1}]},
            {"groups": [{"groupName": "gpu", "image": "v2", "replicas": 1}]},
            {"groups": [{"groupName": "gpu", "image": "v2", "replicas": 3}]},
            {"groups": [{"groupName": "gpu", "image": "v1", "replicas": 3}]},
            id="objects without a name are matched by their place",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "value": "1"}, {"name": "NEW", "value": "x"}]},
            {"env": [{"name": "A", "value": "2"}, {"name": "NEW", "value": "x"}]},
            {"env": [{"name": "A", "value": "2"}]},
            id="an item that only a newer provider makes stays out",
        ),
        pytest.param(
            {"env": [{"name": "OLD", "value": "x"}, {"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "value": "2"}]},
            {"env": [{"name": "A", "value": "2"}, {"name": "OLD", "value": "x"}]},
            id="an item that only the earlier provider made stays",
        ),
        pytest.param(
            {"a": 1, "gone": {"x": 1}},
            {"a": 1, "gone": {"x": 1}},
            {"a": 1},
            {"a": 1},
            id="what the user removes goes",
        ),
        pytest.param(
            {"args": ["--a", "1"]},
            {"args": ["--a", "1", "--new"]},
            {"args": ["--a", "2", "--new"]},
            {"args": ["--a", "2", "--new"]},
            id="a list of texts that differs is taken whole",
        ),
        pytest.param(
            {"a": 1},
            {"a": 1, "section": {"x": 1, "y": 1}},
            {"a": 1, "section": {"x": 2, "y": 1}},
            {"a": 1, "section": {"x": 2, "y": 1}},
            id="a section that was never applied comes whole when the user changes it",
        ),
    ],
)
def test_only_the_users_change_comes_in(applied: Any, old: Any, new: Any, expected: Any) -> None:
    assert rebase(applied, old, new) == expected


SPEC: dict[str, Any] = {
    "model": {"id": "org/m"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"model": {"id": "org/other"}}, ["model.id"]),
        ({"model": {"id": "org/m", "source": "custom"}}, ["model.source"]),
        ({"engine": {"type": "sglang"}}, ["engine.type"]),
        ({"serving": {"mode": "disaggregated"}}, ["serving.mode"]),
        ({"model": {"id": "org/other"}, "engine": {"type": "sglang"}}, ["model.id", "engine.type"]),
        ({"model": {"id": "org/m", "servedName": "x"}}, []),
        ({"engine": {"type": "vllm", "contextLength": 8192}}, []),
        ({"image": "x:1", "env": [{"name": "A", "value": "1"}], "scaling": {"replicas": 2}}, []),
        ({"provider": {"name": "p"}}, []),
    ],
)
def test_identity_fields(change: dict[str, Any], expected: list[str]) -> None:
    old, new = (ModelDeploymentSpec.model_validate(spec) for spec in (SPEC, {**SPEC, **change}))

    assert identity_changed(old, new) == expected
