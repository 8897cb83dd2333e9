"""Helpers named after their content: a serving object keeps its helper during edits and dry runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._provider.contract import Deployment, Document, Provider, Rendered
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.plan import Plan
from support.plans import deployment, planned, provider

KEY = "config.yaml"
PLAIN = "m-config"


def subject(*, by_content: bool = True, **defaults: Any) -> Provider:
    """A provider whose main object names a ConfigMap, in which the context length and some defaults stand."""

    def render(asked: Deployment, schema: Schema) -> Rendered:
        spec = asked.spec
        content = {**defaults, "context": spec.engine.context_length or 0}
        main = {
            "apiVersion": schema.api_version,
            "kind": "Engine",
            "metadata": {"name": asked.name},
            "spec": {"config": f"{asked.name}-config", "replicas": spec.scaling.replicas},
        }
        helper = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{asked.name}-config"},
            "data": {KEY: yaml.safe_dump(content)},
        }
        return Rendered(main, (helper,))

    return replace(
        provider(),
        render=render,
        recreate=lambda old, new: None if old.helpers[0]["data"] == new.helpers[0]["data"] else "config",
        documents=(Document("ConfigMap", ("data", KEY), yaml.safe_dump),),
        named_by_content=("spec.config",) if by_content else (),
    )


def context(length: int, replicas: int = 1) -> Deployment:
    engine = {"type": "vllm", "contextLength": length}
    return deployment({"engine": engine, "scaling": {"replicas": replicas}})


def name(todo: Plan) -> str:
    return str(todo.main["spec"]["config"])


def content(todo: Plan) -> Any:
    (helper,) = todo.helpers
    return yaml.safe_load(helper["data"][KEY])


def test_object_names_its_new_helper() -> None:
    todo = planned(context(1), subject=subject())

    (helper,) = todo.helpers
    assert helper["metadata"]["name"] == name(todo)
    assert name(todo).startswith(f"{PLAIN}-")
    assert todo.fresh == ()


def test_changed_content_creates_a_second_helper() -> None:
    before = planned(context(1), subject=subject())

    todo = planned(context(2), before, subject())

    assert name(todo) != name(before)
    assert [obj["metadata"]["name"] for obj in todo.changed] == [name(todo), "m"]
    assert [obj["metadata"]["name"] for obj in todo.fresh] == [name(todo)]
    assert todo.recreate == "config"


def test_unchanged_helper_content_keeps_its_name() -> None:
    first = planned(context(1), subject=subject())
    second = planned(context(2), first, subject())

    assert name(planned(context(1), second, subject())) == name(first)


@pytest.mark.parametrize(
    "newer", [subject(), subject(added=True)], ids=["as it renders", "with other defaults"]
)
def test_helper_name_stays_until_its_content_changes(newer: Provider) -> None:
    old = planned(context(1), subject=subject(by_content=False))
    assert name(old) == PLAIN

    same = planned(context(1), old, newer)
    scaled = planned(context(1, replicas=2), old, newer)
    edited = planned(context(2), old, newer)

    assert (same.changed, name(same), same.recreate) == ([], PLAIN, None)
    assert ([obj["kind"] for obj in scaled.changed], name(scaled)) == (["Engine"], PLAIN)
    assert scaled.recreate is None
    assert name(edited).startswith(f"{PLAIN}-")
    assert edited.recreate == "config"


def test_newer_defaults_wait_for_an_edit_of_their_field() -> None:
    before = planned(context(1), subject=subject(seats=1))

    todo = planned(context(2), before, subject(seats=9, more=1))

    assert content(todo) == {"context": 2, "seats": 1}


def test_deleted_helper_is_recreated_under_its_name() -> None:
    before = replace(planned(context(1), subject=subject(by_content=False)), helpers=[])

    todo = planned(context(1), before, subject(added=True))

    assert [obj["metadata"]["name"] for obj in todo.changed] == [PLAIN]
    assert todo.recreate is None


def test_changed_helper_is_reverted_under_its_name() -> None:
    before = planned(context(1), subject=subject())
    before.helpers[0]["data"] = {KEY: "context: 7"}

    todo = planned(context(1), before, subject())

    assert [obj["metadata"]["name"] for obj in todo.changed] == [name(before)]
    assert todo.repairs == [(todo.helpers[0], (f"data.{KEY}",))]
    assert todo.recreate is None


def test_helpers_of_refused_tries_do_not_count() -> None:
    before = planned(context(1), subject=subject())
    refused = planned(context(9), before, subject())
    left = replace(before, helpers=[*before.helpers, *refused.helpers])

    todo = planned(context(1), left, subject())

    assert (todo.changed, todo.recreate, name(todo)) == ([], None, name(before))


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(0, 2), st.booleans(), st.integers(0, 2)),
        min_size=2,
        max_size=6,
    )
)
def test_no_helper_that_stands_is_ever_given_another_content(
    steps: list[tuple[int, int, bool, int]],
) -> None:
    live: Plan | None = None
    for length, replicas, by_content, default in steps:
        asked = context(length, replicas)
        todo = planned(asked, live, subject(by_content=by_content or live is not None, default=default))

        assert content(todo)["context"] == length
        assert name(todo) == todo.helpers[0]["metadata"]["name"]
        standing = {obj["metadata"]["name"]: obj for obj in live.helpers} if live else {}
        for obj in todo.helpers:
            if (before := standing.get(obj["metadata"]["name"])) is not None:
                assert manifest.body(before) == manifest.body(obj)
        assert (todo.recreate is None) == (live is None or content(live)["context"] == length)
        live = todo
