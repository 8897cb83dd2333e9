"""The form, its YAML, and the spec of both."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_cli.failure import Failure
from kubefoundry_cli.output import as_yaml
from kubefoundry_dashboard.create import from_form, from_yaml
from kubefoundry_dashboard.form import PREFIX, sections, spec_of
from kubefoundry_dashboard.verdict import judge
from kubefoundry_sdk._api.validation import validate
from support.deployments import CPU, DISAGGREGATED, GPU

MANY: dict[str, Any] = {
    **GPU,
    "env": [
        {"name": "A", "value": "yes"},
        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ],
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "podTemplate": {"metadata": {"labels": {"a": "1"}}},
    "provider": {"name": "kuberay", "overrides": {"rayVersion": "2.9"}},
}


@pytest.mark.parametrize(
    "spec", [GPU, CPU, DISAGGREGATED, MANY], ids=["GPU", "CPU", "disaggregated", "all kinds"]
)
def test_form_returns_its_spec_unchanged(spec: dict[str, Any]) -> None:
    filled = {field.name: field.value for section in sections(spec) for field in section.fields}

    assert spec_of(filled) == spec
    assert from_yaml(as_yaml([from_form(filled, "n").obj]), "n").spec == spec


def test_form_has_each_schema_field_once() -> None:
    names = [field.name for section in sections({}) for field in section.fields]

    assert len(names) == len(set(names)) > 25
    assert all(field.hint for section in sections({}) for field in section.fields)


@pytest.mark.parametrize(
    ("field", "given", "problem"),
    [
        ("resources.gpu.count", "many", "spec.resources.gpu.count"),
        ("resources.gpu.count", "-1", "spec.resources.gpu.count"),
        ("resources.gpu.count", "9" * 400, "spec.resources.gpu.count"),
        ("engine.type", "none", "spec.engine.type"),
        ("engine.trustRemoteCode", "maybe", "spec.engine.trustRemoteCode"),
        ("env", "{}", "spec.env"),
        ("model.id", "a b", "spec.model.id"),
    ],
)
def test_invalid_form_field_is_reported_by_the_schema(field: str, given: str, problem: str) -> None:
    spec = spec_of({PREFIX + "model.id": "org/m", PREFIX + "engine.type": "vllm", PREFIX + field: given})

    assert problem in {violation.path for violation in validate(spec)}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("[]", id="a list"),
        pytest.param("kind: Pod", id="another kind"),
        pytest.param("kind: ModelDeployment", id="no name"),
        pytest.param("kind: ModelDeployment\nmetadata: {name: [1]}", id="a name that is a list"),
        pytest.param("kind: ModelDeployment\nmetadata: {name: m}\nspec: text", id="a spec that is text"),
        pytest.param("a: &a [x]\nb: [*a, *a]", id="references"),
        pytest.param("[" * 5000, id="deep"),
        pytest.param("a: 2001-99-99", id="no date"),
        pytest.param("!!python/object/apply:os.system [id]", id="code"),
        pytest.param("a: b\n---\nc: d", id="two documents"),
        pytest.param("\x00", id="a control character"),
    ],
)
def test_yaml_without_a_model_has_a_problem(text: str) -> None:
    assert from_yaml(text, "n").problem


def test_spec_with_keys_of_other_types_is_refused() -> None:
    draft = from_yaml("kind: ModelDeployment\nmetadata: {name: m}\nspec: {1: 2, engine: {true: x}}", "n")

    with pytest.raises(Failure):
        judge(draft.obj | {"metadata": {**draft.obj["metadata"], "generation": 1}}, [])


def test_form_keeps_yaml_labels_and_derives_the_name() -> None:
    text = "kind: ModelDeployment\nmetadata: {name: m, labels: {team: a}}\nspec: {}"
    assert from_yaml(text, "n").obj["metadata"] == {"name": "m", "namespace": "n", "labels": {"team": "a"}}
    assert from_form({PREFIX + "model.id": "Qwen/Qwen3-0.6B"}, "n").obj["metadata"]["name"] == "qwen3-0-6b"


def test_impossible_namespace_is_named_and_the_form_is_kept() -> None:
    filled = {field.name: field.value for section in sections(GPU) for field in section.fields}
    drafts = [from_form({**filled, "namespace": "Bad_NS"}, "n")]
    drafts.append(from_yaml(drafts[0].text, "n"))

    assert ["Bad_NS cannot be a namespace's name" in draft.problem for draft in drafts] == [True, True]
    assert drafts[0].spec == GPU
    assert "Bad_NS" in drafts[1].text
