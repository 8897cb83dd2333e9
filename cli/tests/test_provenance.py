"""Every upstream value that an edit changes names the spec field that it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, assume, given, settings

from kubefoundry_cli import upstream
from kubefoundry_cli.failure import Failure
from kubefoundry_cli.provenance import by_flag, text
from kubefoundry_cli.providers import installed
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.validation import default
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.reconcile.context import read
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk.testing.generated import specs
from support.deployments import DISAGGREGATED, GPU, model_deployment

SCHEMAS: Final = {
    "kaito": Schema("kaito.sh/v1beta1"),
    "dynamo": Schema("nvidia.com/v1alpha1", frozenset({"subComponentType", "runtimeVersionOverride"})),
    "kuberay": Schema("ray.io/v1"),
}
PACKAGES: Final = installed()
REPLICAS: Final = "DynamoGraphDeployment.spec.services.VllmWorker.replicas"


@pytest.mark.parametrize("value", [1, True, 1.5, None, [], {}, [1], {"a": [2]}, "a"])
def test_unknown_override_of_any_type_is_planned(value: Any) -> None:
    after = {
        **GPU,
        "engine": {**GPU["engine"], "contextLength": 4096},
        "provider": {"overrides": {"bogus": value}},
    }

    planned = plan(PACKAGES["dynamo"], SCHEMAS["dynamo"], GPU, after)

    assert "engine.contextLength" in {field for change in planned.changes for field in change.fields}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEMAS)
def test_every_change_names_its_field(name: str) -> None:
    provider, schema = PACKAGES[name], SCHEMAS[name]
    can = provider.capabilities

    @settings(max_examples=8, suppress_health_check=[HealthCheck.filter_too_much])
    @given(*[specs(engines=list(can.engines), modes=list(can.serving_modes)) for _ in range(2)])
    def holds(before: dict[str, Any], after: dict[str, Any]) -> None:
        assume(all(accepts(provider, schema, spec) for spec in (before, after)))
        planned = plan(provider, schema, before, after)
        assert [text(change.path) for change in planned.changes if not change.fields] == []

    holds()


def test_plan_names_only_the_field_of_an_edit() -> None:
    planned = plan(
        PACKAGES["dynamo"],
        SCHEMAS["dynamo"],
        GPU,
        {**GPU, "engine": {**GPU["engine"], "contextLength": 4096}},
    )

    assert {field for change in planned.changes for field in change.fields} == {"engine.contextLength"}
    assert planned.unchanged > len(planned.changes)
    assert planned.write_plan.recreate is None


def test_edit_of_fields_that_only_go_together_names_the_mode() -> None:
    planned = plan(PACKAGES["kuberay"], SCHEMAS["kuberay"], GPU, DISAGGREGATED)

    assert "serving.mode" in {field for change in planned.changes for field in change.fields}


@pytest.mark.parametrize("name", ["dynamo", "kuberay"])
@pytest.mark.parametrize("edit", [(GPU, DISAGGREGATED), (DISAGGREGATED, GPU)], ids=["apart", "together"])
def test_change_of_mode_names_only_edited_fields(name: str, edit: tuple[Object, Object]) -> None:
    before, after = edit

    planned = plan(PACKAGES[name], SCHEMAS[name], before, after)

    named = {field for change in planned.changes for field in change.fields}
    assert "serving.mode" in named
    assert named.isdisjoint({"engine.type", "model.id"})


def drifted(live: Object, *, value: Any, owner: str | None) -> Object:
    """The live graph with another number of workers, written by that manager."""
    changed = deepcopy(live)
    changed["spec"]["services"]["VllmWorker"]["replicas"] = value
    if owner:
        fields: Object = {"f:spec": {"f:services": {"f:VllmWorker": {"f:replicas": {}}}}}
        changed["metadata"]["managedFields"] = [
            {"manager": owner, "operation": "Update", "fieldsV1": fields, "time": "2026-01-01T00:00:00Z"}
        ]
    return changed


def test_plan_puts_drift_back_when_nothing_is_edited() -> None:
    planned = plan_over(lambda live: drifted(live, value=7, owner="kubectl-edit"), GPU)

    assert [(text(one.path), one.old, one.new, one.fields, one.reverts) for one in planned.changes] == [
        (REPLICAS, 7, 1, (), "kubectl-edit")
    ]


def test_plan_of_edit_shows_live_value_and_its_writer() -> None:
    planned = plan_over(
        lambda live: drifted(live, value=7, owner="kubectl-edit"), {**GPU, "scaling": {"replicas": 2}}
    )

    [change] = [one for one in planned.changes if text(one.path) == REPLICAS]
    assert (change.old, change.new, change.fields, change.reverts) == (
        7,
        2,
        ("scaling.replicas",),
        "kubectl-edit",
    )


def test_plan_leaves_values_that_admission_stored() -> None:
    planned = plan_over(lambda live: drifted(live, value=7, owner=None), GPU)

    assert planned.changes == ()


def test_plan_names_removed_and_added_arguments_of_others() -> None:
    def edited(live: Object) -> Object:
        changed = drifted(live, value=1, owner="kubectl-edit")
        [args] = [value for path, value in _lists(changed) if path == "args"]
        args[:] = [*(one for one in args if one != "--trust-remote-code"), "--seed", "7"]
        fields: Object = {
            "f:services": {"f:VllmWorker": {"f:extraPodSpec": {"f:mainContainer": {"f:args": {}}}}}
        }
        changed["metadata"]["managedFields"][0]["fieldsV1"] = {"f:spec": fields}
        return changed

    planned = plan_over(edited, GPU)

    assert {(text(one.path).rpartition(".")[2], one.reverts) for one in planned.changes} == {
        ("args[--seed]", "kubectl-edit"),
        ("args[--trust-remote-code]", "kubectl-edit"),
    }


def test_plan_compares_with_live_object_without_a_record() -> None:
    def bare(live: Object) -> Object:
        changed = deepcopy(live)
        del changed["metadata"]["annotations"][names.APPLIED_ANNOTATION]
        return changed

    planned = plan_over(bare, GPU)

    assert planned.write_plan.changed
    assert planned.changes == ()


def test_plan_ignores_replicas_of_an_autoscaler() -> None:
    planned = planned_while_scaled(7, {**GPU, "scaling": {"replicas": 3}})

    changed = [text(change.path) for change in planned.changes]
    assert changed
    assert [path for path in changed if path.endswith("workerGroupSpecs[0].replicas")] == []


def test_recreation_replaces_the_count_of_an_autoscaler() -> None:
    planned = planned_while_scaled(7, {**GPU, "model": {"id": "org/other"}})

    counts = [
        (change.old, change.new)
        for change in planned.changes
        if text(change.path).endswith("workerGroupSpecs[0].replicas")
    ]
    assert planned.write_plan.recreate == "model.id changed"
    assert counts == [(7, 1)]


def planned_while_scaled(count: int, after: dict[str, Any]) -> upstream.Planned:
    """The plan of an edit on KubeRay, where an autoscaler has set the number of workers."""
    provider, schema = PACKAGES["kuberay"], SCHEMAS["kuberay"]
    stored = _stored(GPU, 1)
    found = upstream.rendered(provider, stored, schema)
    live = deepcopy(manifest.with_ownership(found.main, read(stored), provider.name, found.image))
    live["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["replicas"] = count
    return upstream.planned(provider, _stored(after, 2), schema, live, [])


def test_removed_argument_is_one_change() -> None:
    engine = {**GPU["engine"], "contextLength": 4096, "args": {"max-num-seqs": "32"}}

    planned = plan(PACKAGES["dynamo"], SCHEMAS["dynamo"], {**GPU, "engine": engine}, GPU)

    arguments = [(text(change.path).rpartition(".")[2], change.fields) for change in planned.changes]
    assert sorted(arguments) == [
        ("args[--max-model-len]", ("engine.contextLength",)),
        ("args[--max-num-seqs]", ("engine.args",)),
    ]


def test_argument_follows_its_own_fields() -> None:
    provider, schema = PACKAGES["dynamo"], SCHEMAS["dynamo"]
    stored = _stored({**GPU, "engine": {**GPU["engine"], "contextLength": 4096}}, 1)
    found = upstream.rendered(provider, stored, schema)
    live = manifest.with_ownership(found.main, read(stored), provider.name, found.image)
    [args] = [value for path, value in _lists(live) if path == "args"]
    args[args.index("4096")] = "1"

    values = upstream.values(provider, stored, schema, live)

    of = {value.path.rpartition(".")[2]: value for value in values if "args[" in value.path}
    assert of["args[--max-model-len]"].fields == ("engine.contextLength",)
    assert "engine.contextLength" not in of["args[--tensor-parallel-size]"].fields
    assert [path for path, value in of.items() if value.writer] == ["args[--max-model-len]"]


def _lists(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All lists below, with the name of their field."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _lists(item, key)
    elif isinstance(value, list):
        yield name, value


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (["serve", "m", "--a", "1", "--b"], {"0": "serve", "1": "m", "--a": "1", "--b": "--b"}),
        (["--a=1", "--n", "-1", "--a", "2", "3"], {"--a": "1", "--n": "-1", "--a#2": "2 3"}),
        (["sh", "run"], None),
        (["--a", 1], None),
        ([], None),
    ],
)
def test_arguments_are_read_by_flag(words: list[Any], flags: dict[str, str] | None) -> None:
    assert by_flag(words) == flags


def test_plan_is_empty_when_the_spec_is_equal() -> None:
    planned = plan(PACKAGES["kuberay"], SCHEMAS["kuberay"], GPU, GPU)

    assert (planned.changes, planned.write_plan.changed) == ((), [])


def accepts(provider: Provider, schema: Schema, spec: dict[str, Any]) -> bool:
    try:
        return bool(upstream.rendered(provider, _stored(spec, 1), schema))
    except Failure:
        return False


def plan_over(change: Callable[[Object], Object], after: dict[str, Any]) -> upstream.Planned:
    """Of an edit of a model on Dynamo, whose graph someone has changed."""
    provider, schema, stored = PACKAGES["dynamo"], SCHEMAS["dynamo"], _stored(GPU, 1)
    found = upstream.rendered(provider, stored, schema)
    live = manifest.with_ownership(found.main, read(stored), provider.name, found.image)
    return upstream.planned(provider, _stored(after, 2), schema, change(live), [])


def plan(
    provider: Provider, schema: Schema, before: dict[str, Any], after: dict[str, Any]
) -> upstream.Planned:
    """Of an edit, where the first spec has been applied."""
    stored = _stored(before, 1)
    found = upstream.rendered(provider, stored, schema)
    live, *helpers = [
        manifest.with_ownership(obj, read(stored), provider.name, found.image)
        for obj in (found.main, *found.helpers)
    ]
    return upstream.planned(provider, _stored(after, 2), schema, live, helpers)


def _stored(spec: dict[str, Any], generation: int) -> Object:
    made = model_deployment("m", "models", spec)
    return {
        **made,
        "metadata": {**made["metadata"], "uid": "u", "generation": generation},
        "spec": default(spec),
    }
