"""The plan of a reconcile: objects to write, to delete and to leave unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk._provider.contract import Deployment, Rendered
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write import manifest
from support.plans import V2, changed, deployment, planned, provider


def test_missing_objects_are_created_with_helpers_first() -> None:
    todo = planned(deployment())

    assert changed(todo) == ["ConfigMap", "Engine"]
    assert todo.recreate is None


def test_nothing_is_written_where_nothing_has_changed() -> None:
    todo = planned(deployment(), planned(deployment()))

    assert (todo.changed, todo.drifted, todo.recreate) == ([], (), None)


def test_unchanged_spec_is_rendered_once() -> None:
    rendered = []

    def render(deployment: Deployment, schema: Schema) -> Rendered:
        rendered.append(deployment)
        return provider().render(deployment, schema)

    planned(deployment(), planned(deployment()), replace(provider(), render=render))

    assert len(rendered) == 1


def test_true_in_the_place_of_1_is_a_change() -> None:
    before, after = ({"provider": {"overrides": {"count": value}}} for value in (1, True))

    def render(deployment: Deployment, schema: Schema) -> Rendered:
        rendered = provider().render(deployment, schema)
        assert deployment.spec.provider and deployment.spec.provider.overrides
        count = deployment.spec.provider.overrides["count"]
        return replace(rendered, main={**rendered.main, "spec": {**rendered.main["spec"], "count": count}})

    subject = replace(provider(), render=render)

    todo = planned(deployment(after), planned(deployment(before), subject=subject), subject)

    assert [obj["spec"]["count"] for obj in todo.changed] == [True]


@pytest.mark.parametrize(
    ("spec", "metadata", "kinds", "recreate"),
    [
        pytest.param({"scaling": {"replicas": 3}}, {}, ["Engine"], None, id="in place"),
        pytest.param(
            {"model": {"id": "org/m", "servedName": "x"}}, {}, ["ConfigMap"], None, id="helper only"
        ),
        pytest.param({"env": [{"name": "A", "value": "1"}]}, {}, [], None, id="not rendered"),
        pytest.param({}, {"labels": {"kubefoundry.ai/team": "a"}}, ["ConfigMap", "Engine"], None, id="label"),
        pytest.param(
            {"engine": {"type": "vllm", "contextLength": 8}},
            {},
            ["Engine"],
            "context",
            id="the provider's own",
        ),
        pytest.param(
            {"model": {"id": "org/other"}}, {}, ["ConfigMap", "Engine"], "model.id changed", id="identity"
        ),
        pytest.param(
            {"engine": {"type": "sglang"}},
            {},
            ["Engine"],
            "engine.type changed",
            id="identity, rendered alike",
        ),
        pytest.param({}, {"annotations": {"kubefoundry.ai/refresh": "1"}}, ["Engine"], None, id="refresh"),
    ],
)
def test_plan_lists_changed_kinds(
    spec: dict[str, Any], metadata: dict[str, Any], kinds: list[str], recreate: str | None
) -> None:
    todo = planned(deployment(spec, **metadata), planned(deployment()))

    assert (changed(todo), todo.recreate) == (kinds, recreate)


@pytest.mark.parametrize(
    ("spec", "annotations", "recreate"),
    [
        pytest.param({}, {}, None, id="nothing changed"),
        pytest.param(
            {"scaling": {"replicas": 3}},
            {},
            "Example ignores further changes of the old object",
            id="a change",
        ),
        pytest.param(
            {},
            {"kubefoundry.ai/refresh": "1"},
            "Example ignores further changes of the old object",
            id="refresh",
        ),
    ],
)
def test_abandoned_object_is_recreated_by_the_next_change(
    spec: dict[str, Any], annotations: dict[str, str], recreate: str | None
) -> None:
    subject = replace(provider(), must_recreate=lambda live: True)

    todo = planned(deployment(spec, annotations=annotations), planned(deployment()), subject)

    assert todo.recreate == recreate


def test_changed_helper_does_not_recreate_an_abandoned_object() -> None:
    subject = replace(provider(), must_recreate=lambda live: True)
    live = planned(deployment())
    changed_by_hand = replace(live, helpers=[{**helper, "data": {"by": "hand"}} for helper in live.helpers])

    todo = planned(deployment(), changed_by_hand, subject)

    assert (changed(todo), todo.recreate) == (["ConfigMap"], None)


def test_plan_is_empty_when_only_crd_version_changes() -> None:
    todo = planned(deployment(), planned(deployment()), schema=V2)

    assert (todo.changed, todo.drifted) == ([], ())


def test_change_is_written_in_the_applied_crd_version() -> None:
    todo = planned(deployment({"scaling": {"replicas": 3}}), planned(deployment()), schema=V2)

    assert changed(todo) == ["Engine"]
    assert (todo.main["apiVersion"], todo.main["spec"]["serve"]) == ("example.com/v2", 3)


def test_helper_follows_an_edit_and_its_revert() -> None:
    named = deployment({"model": {"id": "org/m", "servedName": "x"}})

    live = planned(deployment())
    # Only the helper is written.
    applied = replace(live, helpers=planned(named, live).helpers)
    back = planned(deployment(), applied)

    assert changed(back) == ["ConfigMap"]
    assert back.helpers[0]["data"] == planned(deployment()).helpers[0]["data"]


def test_packed_record_is_read_back() -> None:
    record = manifest.Record({"metadata": {"name": "m"}, "spec": {"a": [1]}}, {"image": "x"}, "r", None)

    live = {"metadata": {"annotations": {"kubefoundry.ai/applied": manifest.pack(record)}}}

    assert manifest.applied(live) == record
    assert manifest.applied({"metadata": {}}) is None
