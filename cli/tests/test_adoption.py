"""An upstream object read back: its ModelDeployment renders what is there, or says where not."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kubefoundry_cli import adoption, upstream
from kubefoundry_cli.failure import Failure
from kubefoundry_cli.model import valid
from kubefoundry_cli.provenance import text
from kubefoundry_cli.providers import installed, probed
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.contract import Provider, Schema
from kubefoundry_sdk.provider.reconcile.context import read
from kubefoundry_sdk.provider.write.plan import plan
from kubefoundry_sdk.testing.generated import specs
from support.deployments import GPU
from support.upstream import PROVIDERS, standin


def schema_of(provider: Provider) -> Schema:
    return provider.upstream.schema or probed(provider, standin(provider.name).document)


def left_behind(provider: Provider, schema: Schema, spec: dict[str, Any]) -> tuple[Object, list[Object]]:
    """The upstream objects of that spec as an eject leaves them, main object first."""
    blank = {"metadata": {"name": "m", "namespace": "models"}, "kind": provider.upstream.kind}
    obj = valid(adoption.model(blank, spec))
    deployment = read(obj)
    rendered = upstream.rendered(provider, obj, schema)
    todo = plan(provider, deployment, schema, rendered, None, [])
    found = []
    for dressed, bare in zip([todo.main, *todo.helpers], [rendered.main, *rendered.helpers], strict=True):
        meta = {"name": dressed["metadata"]["name"], "namespace": "models"}
        meta |= {
            part: bare["metadata"][part] for part in ("labels", "annotations") if part in bare["metadata"]
        }
        found.append(copy.deepcopy({**dressed, "metadata": meta}))
    return found[0], found[1:]


@pytest.mark.parametrize("name", [*PROVIDERS, "direct"])
@settings(max_examples=40)
@given(data=st.data())
def test_what_a_spec_gives_is_adopted(name: str, data: st.DataObject) -> None:
    provider = installed()[name]
    schema = schema_of(provider)
    spec = data.draw(specs(engines=provider.capabilities.engines, provider={"name": name}))
    # a value that looks like a flag reads as one
    assume(not any(value.startswith("--") for value in spec["engine"].get("args", {}).values()))
    try:
        live, helpers = left_behind(provider, schema, spec)
    except Failure:
        assume(False)

    found = adoption.adoption(provider, schema, live, helpers)

    assert (found.changes, found.missing) == ((), ()), found.obj["spec"]


def edited(live: Object, path: str, value: Any) -> Object:
    made = copy.deepcopy(live)
    place: Any = made
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps:
        place = place[step]
    place[last] = value
    return made


@pytest.mark.parametrize(
    ("name", "path", "value", "told"),
    [
        pytest.param(
            "direct",
            "spec.template.spec.enableServiceLinks",
            True,
            "Deployment.spec.template.spec.enableServiceLinks",
            id="a setting that no field gives",
        ),
        pytest.param(
            "dynamo",
            "spec.services.VllmWorker.componentType",
            "planner",
            "DynamoGraphDeployment.spec.services.VllmWorker.componentType",
            id="another type of component",
        ),
        pytest.param("kaito", "resource.count", 2, "Workspace.resource.count", id="two nodes"),
        pytest.param(
            "kuberay",
            "spec.rayClusterConfig.enableInTreeAutoscaling",
            False,
            "RayService.spec.rayClusterConfig.enableInTreeAutoscaling",
            id="without the autoscaler",
        ),
    ],
)
def test_what_no_spec_gives_is_shown(name: str, path: str, value: Any, told: str) -> None:
    provider = installed()[name]
    schema = schema_of(provider)
    live, helpers = left_behind(provider, schema, {**GPU, "provider": {"name": name}})

    found = adoption.adoption(provider, schema, edited(live, path, value), helpers)

    assert [(text(change.path), change.old) for change in found.changes] == [(told, value)]


@pytest.mark.parametrize("name", [*PROVIDERS, "direct"])
def test_an_object_of_another_shape_is_refused_in_one_line(name: str) -> None:
    provider = installed()[name]
    live = {
        "kind": provider.upstream.kind,
        "metadata": {"name": "m", "namespace": "models"},
        "spec": {"x": [1]},
    }

    with pytest.raises(Failure) as refused:
        adoption.adoption(provider, schema_of(provider), live, [])

    assert refused.value.message.startswith(f"{provider.upstream.kind} 'm' cannot be a ModelDeployment")


def test_what_is_taken_over_has_one_owner() -> None:
    fields: dict[str, Any] = {"f:spec": {"f:a": {}, "f:b": {"f:c": {}, "f:d": {}}}}
    managed = [
        {"manager": "kubectl", "operation": "Update", "fieldsV1": {**fields, "f:metadata": {"f:labels": {}}}},
        {"manager": "helm", "operation": "Apply", "fieldsV1": fields},
        {"manager": "operator", "operation": "Update", "subresource": "status", "fieldsV1": fields},
    ]

    own = {
        "manager": "x-provider",
        "operation": "Apply",
        "fieldsV1": {"f:spec": {"f:a": {}, "f:b": {"f:c": {}}}},
    }
    tried = {"metadata": {"managedFields": [*managed, own]}}

    found = adoption.taken_over({"metadata": {"managedFields": managed}}, tried, "x-provider")

    assert [(entry["manager"], entry["fieldsV1"]) for entry in found] == [
        ("x-provider", own["fieldsV1"]),
        ("kubectl", {"f:spec": {"f:b": {"f:d": {}}}, "f:metadata": {"f:labels": {}}}),
        ("helm", {"f:spec": {"f:b": {"f:d": {}}}}),
        ("operator", fields),
    ]
