"""An upstream object read back: its ModelDeployment renders what is there, or says where not."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kubefoundry_cli import adoption, upstream
from kubefoundry_cli.failure import Failure
from kubefoundry_cli.model import valid
from kubefoundry_cli.provenance import text
from kubefoundry_cli.providers import installed
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.contract import PodDefaults
from kubefoundry_sdk._provider.reconcile.context import read
from kubefoundry_sdk._provider.write.plan import plan
from kubefoundry_sdk.testing.generated import specs
from support.deployments import GPU
from support.left_behind import left_behind, schema_of
from support.sampled_cases import examples
from support.upstream import PROVIDERS

POD_DEFAULTS = PodDefaults((("HTTPS_PROXY", "http://proxy.example.com"),), "company-ca/ca.crt")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PROVIDERS, "direct"])
@settings(max_examples=examples(40))
@given(data=st.data())
def test_rendered_objects_are_adopted_without_changes(name: str, data: st.DataObject) -> None:
    provider = installed()[name]
    schema = schema_of(provider)
    can = provider.capabilities
    spec = data.draw(specs(engines=can.engines, modes=can.serving_modes, provider={"name": name}))
    # a value that looks like a flag reads as one
    values = [*spec["engine"].get("args", {}).values(), *spec["engine"].get("extraArgs", ())[1::2]]
    assume(not any(value.startswith("--") for value in values))
    try:
        live, helpers = left_behind(provider, schema, spec)
    except Failure:
        assume(False)

    found = adoption.adoption(provider, schema, live, helpers)

    assert (found.changes, found.missing) == ((), ()), found.obj["spec"]
    # a live value that is not rendered would go when the printed ModelDeployment is applied elsewhere
    made, _ = left_behind(provider, schema, found.obj["spec"])
    assert upstream.flattened(provider, [made]) == upstream.flattened(provider, [live])


@pytest.mark.parametrize("name", [*PROVIDERS, "direct"])
def test_import_keeps_memory_limit(name: str) -> None:
    provider = installed()[name]
    schema = schema_of(provider)
    spec = {**GPU, "resources": {"gpu": {"count": 1}, "memory": "48Gi"}, "image": "example.com/vllm:2.55.0"}
    live, helpers = left_behind(provider, schema, {**spec, "provider": {"name": name}})

    found = adoption.adoption(provider, schema, live, helpers)

    assert found.fits
    assert found.obj["spec"]["resources"] == spec["resources"]


@pytest.mark.parametrize("name", [*PROVIDERS, "direct"])
@pytest.mark.parametrize("written_with", [PodDefaults(), POD_DEFAULTS], ids=["without", "with"])
def test_import_changes_nothing_beside_pod_defaults(name: str, written_with: PodDefaults) -> None:
    provider = installed()[name]
    schema = schema_of(provider)
    spec = {**GPU, "image": "example.com/vllm:2.55.0", "provider": {"name": name}}
    live, helpers = left_behind(replace(provider, pod_defaults=written_with), schema, spec)

    found = adoption.adoption(replace(provider, pod_defaults=POD_DEFAULTS), schema, live, helpers)

    assert found.fits, found.changes


@pytest.mark.parametrize("name", [*PROVIDERS, "direct"])
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"resources": {"gpu": {"count": 1}, "memory": 34_359_738_368}}, id="memory as a number"),
        pytest.param(
            {"env": [{"name": "EMPTY"}, {"name": "A", "value": "b"}]}, id="a variable without a value"
        ),
        pytest.param({"tolerations": [{"key": "gpu", "operator": "Exists"}]}, id="tolerations"),
        pytest.param({"nodeSelector": {"pool": "gpu"}}, id="nodes"),
        pytest.param({"podTemplate": {"metadata": {"labels": {"team": "a"}}}}, id="labels of pods"),
        pytest.param(
            {
                "model": {
                    **GPU["model"],
                    "storage": {"volumes": [{"name": "w", "claimName": "c", "purpose": "modelCache"}]},
                }
            },
            id="a claim for weights",
        ),
    ],
)
def test_import_keeps_each_value(name: str, fields: dict[str, Any]) -> None:
    provider = installed()[name]
    schema = schema_of(provider)
    spec = {**GPU, "image": "example.com/vllm:2.55.0", "provider": {"name": name}, **fields}
    live, helpers = left_behind(provider, schema, spec)

    found = adoption.adoption(provider, schema, live, helpers)

    assert found.fits
    made, _ = left_behind(provider, schema, found.obj["spec"])
    assert upstream.flattened(provider, [made]) == upstream.flattened(provider, [live])


@pytest.mark.parametrize(
    ("drain", "grace"),
    [
        (drain, grace)
        for drain in (None, 0, 5, 570)
        for grace in (None, 29, 30, 35, 60, 600, 601)
        # A shorter period would end a pod while it drains: direct refuses it.
        if grace is None or grace > (30 if drain is None else drain)
    ],
)
def test_import_keeps_drain_and_grace_period(drain: int | None, grace: int | None) -> None:
    provider = installed()["direct"]
    overrides = {} if drain is None else {"drainSeconds": drain}
    template = {} if grace is None else {"podTemplate": {"spec": {"terminationGracePeriodSeconds": grace}}}
    spec = {**GPU, "provider": {"name": "direct", "overrides": overrides}, **template}
    live, helpers = left_behind(provider, schema_of(provider), spec)

    found = adoption.adoption(provider, schema_of(provider), live, helpers)

    assert found.fits, found.changes


@pytest.mark.parametrize("replicas", [0, 3])
@pytest.mark.parametrize("name", ["direct", "dynamo", "kuberay"])
def test_import_keeps_the_number_of_replicas(name: str, replicas: int) -> None:
    provider = installed()[name]
    schema = schema_of(provider)
    spec = {**GPU, "provider": {"name": name}, "scaling": {"replicas": replicas}}
    live, helpers = left_behind(provider, schema, spec)

    adopted = adoption.adoption(provider, schema, live, helpers)

    assert adopted.fits
    assert adopted.obj["spec"]["scaling"]["replicas"] == replicas


def reordered(value: Any) -> Any:
    """Return the value with the keys of each map in reverse."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(item) for item in value] if isinstance(value, list) else value


def test_import_keeps_the_order_of_keys_in_a_document() -> None:
    provider = installed()["kuberay"]
    schema = schema_of(provider)
    spec = {**GPU, "provider": {"name": "kuberay"}, "engine": {"type": "vllm", "args": {"seed": "1"}}}
    live, helpers = left_behind(provider, schema, spec)
    text = yaml.safe_dump(reordered(yaml.safe_load(live["spec"]["serveConfigV2"])), sort_keys=False)
    assert text != live["spec"]["serveConfigV2"]
    live["spec"]["serveConfigV2"] = text

    adopted = adoption.adoption(provider, schema, live, helpers)

    assert adopted.fits
    assert adopted.write_plan.main["spec"]["serveConfigV2"] == text


def unlabelled(value: Any) -> Any:
    """As a release before that label wrote it."""
    if isinstance(value, dict):
        found = {key: unlabelled(item) for key, item in value.items() if key != names.MODEL_LABEL}
        return {key: item for key, item in found.items() if item or not value[key]}
    return [unlabelled(item) for item in value] if isinstance(value, list) else value


def pods_labelled(value: Any) -> int:
    if isinstance(value, dict):
        return (names.MODEL_LABEL in value) + sum(map(pods_labelled, value.values()))
    return sum(map(pods_labelled, value)) if isinstance(value, list) else 0


@pytest.mark.parametrize("name", [*PROVIDERS, "direct"])
def test_pods_without_the_label_of_their_model_never_get_it(name: str) -> None:
    provider = installed()[name]
    schema = schema_of(provider)
    spec = {**GPU, "image": "example.com/vllm:2.55.0", "provider": {"name": name}}
    new, _ = left_behind(provider, schema, spec)
    live, helpers = left_behind(provider, schema, spec, unlabelled)
    assert (pods_labelled(new), pods_labelled(live)) == (2 if name in ("dynamo", "kuberay") else 1, 0)

    found = adoption.adoption(provider, schema, live, helpers)
    edit = {**found.obj["spec"], "scaling": {"replicas": 2}, "env": [{"name": "A", "value": "b"}]}
    deployment = read(valid({**found.obj, "spec": edit}))
    later = plan(
        provider, deployment, schema, provider.render(deployment, schema), found.write_plan.main, helpers
    )

    assert (found.changes, found.missing) == ((), ())
    assert pods_labelled(found.write_plan.main) == pods_labelled(later.main) == 0
    assert "{'name': 'A', 'value': 'b'}" in str(later.main)


def edited(live: Object, path: str, value: Any) -> Object:
    made = copy.deepcopy(live)
    place: Any = made
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps:
        place = place[step]
    place[last] = value
    return made


@pytest.mark.parametrize(
    ("name", "path", "value", "reported"),
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
def test_adoption_shows_values_that_no_spec_renders(name: str, path: str, value: Any, reported: str) -> None:
    provider = installed()[name]
    schema = schema_of(provider)
    live, helpers = left_behind(provider, schema, {**GPU, "provider": {"name": name}})

    found = adoption.adoption(provider, schema, edited(live, path, value), helpers)

    assert [(text(change.path), change.old) for change in found.changes] == [(reported, value)]


@pytest.mark.parametrize("name", [*PROVIDERS, "direct"])
def test_object_of_another_shape_is_refused_in_one_line(name: str) -> None:
    provider = installed()[name]
    live = {
        "kind": provider.upstream.kind,
        "metadata": {"name": "m", "namespace": "models"},
        "spec": {"x": [1]},
    }

    with pytest.raises(Failure) as refused:
        adoption.adoption(provider, schema_of(provider), live, [])

    assert refused.value.message.startswith(f"{provider.upstream.kind} 'm' cannot be a ModelDeployment")


def test_adopted_fields_have_one_manager() -> None:
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


@pytest.mark.parametrize("name", ["dynamo", "direct"])
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param({"trustRemoteCode": True, "args": {"trust-remote-code": "true"}}, id="both"),
        pytest.param({"args": {"max-model-len": "2048"}}, id="argument"),
        pytest.param(
            {"trustRemoteCode": True, "args": {"max-model-len": "2048", "trust-remote-code": ""}},
            id="two arguments",
        ),
    ],
)
def test_flag_of_a_field_is_adopted_where_an_argument_put_it(name: str, engine: dict[str, Any]) -> None:
    provider = installed()[name]
    schema = schema_of(provider)
    spec = {
        **GPU,
        "engine": {"type": "vllm", **engine},
        "image": "example.com/engine:1.0.0",
        "provider": {"name": name},
    }
    live, helpers = left_behind(provider, schema, spec)

    found = adoption.adoption(provider, schema, live, helpers)

    assert (found.changes, found.missing) == ((), ()), found.obj["spec"]


@pytest.mark.parametrize("name", ["dynamo", "direct", "kaito"])
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param({"extraArgs": ["--port2=1"]}, id="alone"),
        pytest.param({"extraArgs": ["--port2=true"]}, id="switch"),
        pytest.param({"extraArgs": ["--port2="]}, id="empty"),
        pytest.param({"extraArgs": ["-O3"]}, id="level"),
        pytest.param({"extraArgs": ["--port2=1", "--port3=$(HOME)$$"]}, id="two"),
        pytest.param(
            {"extraArgs": ["--top=1", "--lora-modules", "a=org/a", "b=org/b", "--end=2"]}, id="between"
        ),
        pytest.param(
            {"args": {"seed": "1"}, "extraArgs": ["--top=1", "--end", "2"]}, id="beside an argument"
        ),
        pytest.param(
            {"args": {"max-model-len": "2048"}, "extraArgs": ["--port2=1"]}, id="beside a field's flag"
        ),
        pytest.param(
            {"trustRemoteCode": True, "args": {"trust-remote-code": ""}, "extraArgs": ["--port2=1"]},
            id="beside a field's switch",
        ),
    ],
)
def test_extra_argument_of_one_word_is_adopted(name: str, engine: dict[str, Any]) -> None:
    provider = installed()[name]
    schema = schema_of(provider)
    spec = {**GPU, "engine": {"type": "vllm", **engine}, "image": "example.com/engine:1.0.0"}
    live, helpers = left_behind(provider, schema, {**spec, "provider": {"name": name}})

    found = adoption.adoption(provider, schema, live, helpers)

    assert (found.changes, found.missing) == ((), ()), found.obj["spec"]
    made, _ = left_behind(provider, schema, found.obj["spec"])
    assert upstream.flattened(provider, [made]) == upstream.flattened(provider, [live])
