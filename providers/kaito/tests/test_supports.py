"""What a Workspace cannot do, beyond the field table: names, nodes and old CRDs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_kaito.probe import ANY_MODEL, ENGINE_CONFIG, INSTANCE_TYPE_DEFAULT
from kubefoundry_kaito.render import render
from kubefoundry_kaito.settings import Settings
from kubefoundry_kaito.supports import supports
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.pod import QUEUE_LABEL
from kubefoundry_sdk.testing.generated import deployment

TEMPLATE: dict[str, Any] = {
    "model": {"id": "org/m"},
    "engine": {"type": "llamacpp"},
    "image": "example/aikit:1",
}
PRESET: dict[str, Any] = {
    "model": {"id": "microsoft/phi-4"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}

NEWEST = Schema("kaito.sh/v1beta1", frozenset({ENGINE_CONFIG, ANY_MODEL}))
OLDEST = Schema("kaito.sh/v1alpha1", frozenset({INSTANCE_TYPE_DEFAULT}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("n" * 52, None),
        (
            "n" * 53,
            f'KAITO allows names of at most 52 characters, but "{"n" * 53}" has 53: choose a shorter one',
        ),
        ("a.b", 'KAITO does not allow a dot in a name, but "a.b" has one: choose another name'),
        (
            "1st",
            'KAITO creates a Service called "1st", and before Kubernetes 1.36 the name of a Service begins with a '
            "letter: choose another name",
        ),
        ("vllm-a", None),
        *(
            (
                name,
                f'KAITO creates a Service called "{name}", which gives pods of its namespace {variable}=tcp://…, and '
                "an engine that reads it as its port exits: choose another name",
            )
            for name, variable in (("vllm", "VLLM_PORT"), ("llama-arg", "LLAMA_ARG_PORT"))
        ),
    ],
)
def test_names(name: str, text: str | None) -> None:
    assert supports(deployment(TEMPLATE, name), NEWEST, Settings()) == ([text] if text else [])


AUTO_NEEDS = (
    "KAITO creates nodes in this cluster and needs an instance type: set provider.overrides.instanceType"
)


@pytest.mark.parametrize(
    ("spec", "flag"), [(TEMPLATE, "--kaito-cpu-instance-type"), (PRESET, "--kaito-gpu-instance-type")]
)
def test_nodes_that_kaito_makes_need_an_instance_type(spec: dict[str, Any], flag: str) -> None:
    messages = supports(deployment(spec), NEWEST, Settings(provisioning="auto"))

    assert messages == [f"{AUTO_NEEDS}, or start the KAITO provider with {flag}"]


def test_old_kaito_without_node_names_is_refused() -> None:
    by_name = {**TEMPLATE, "provider": {"name": "kaito", "overrides": {"preferredNodes": ["node-a"]}}}

    assert supports(deployment(TEMPLATE), OLDEST, Settings()) == [
        "KAITO before 0.8 takes existing nodes by name only: set provider.overrides.preferredNodes, or upgrade KAITO"
    ]
    assert supports(deployment(by_name), OLDEST, Settings()) == []


def test_presets_of_the_oldest_kaito_need_not_be_vllm() -> None:
    settings = Settings(provisioning="auto", gpu_instance_type="gpu-1")

    assert supports(deployment(PRESET), OLDEST, settings) == [
        "Before KAITO 0.4.4 a preset may not run vLLM: upgrade KAITO, or set image"
    ]


def test_without_a_crd_only_what_every_kaito_refuses_is_reported() -> None:
    assert supports(deployment(PRESET), None, Settings()) == []
    assert supports(deployment({**PRESET, "scaling": {"replicas": 3}}), None, Settings()) != []


def test_all_problems_are_reported_at_once() -> None:
    spec = {**PRESET, "scaling": {"replicas": 0}, "env": [{"name": "A", "value": "b"}]}

    assert len(supports(deployment(spec, "a.b"), NEWEST, Settings())) == 3


@pytest.mark.parametrize("flag", ["max-model-len", "max_model_len"])
def test_arg_may_repeat_a_field_but_not_contradict_it(flag: str) -> None:
    def messages(value: str) -> list[str]:
        engine = {"type": "vllm", "contextLength": 8192, "args": {flag: value}}
        return supports(deployment({**PRESET, "engine": engine}), NEWEST, Settings())

    assert messages("8192") == []
    assert messages("4096") == [
        'engine.args "max-model-len" is "4096", but engine.contextLength makes it "8192": remove it'
    ]


AIKIT: dict[str, Any] = {
    "model": {"id": "org/repo/dir/file.gguf"},
    "engine": {"type": "llamacpp"},
    "image": "x:1",
    "provider": {"name": "kaito"},
}


def test_file_of_a_repository_is_for_llama_server() -> None:
    server = {**AIKIT, "provider": {"name": "kaito", "overrides": {"llamacppServer": "llama-server"}}}

    (reported,) = supports(deployment(AIKIT), NEWEST, Settings())
    assert "names a file in one" in reported
    assert supports(deployment(server), NEWEST, Settings()) == []
    (container,) = render(deployment(server), NEWEST, Settings()).main["inference"]["template"]["spec"][
        "containers"
    ]
    assert container["args"][:4] == ["--hf-repo", "org/repo", "--hf-file", "dir/file.gguf"]


@pytest.mark.parametrize(
    ("label", "refused"),
    [
        ("kaito.sh/workspace", True),
        ("statefulset.kubernetes.io/pod-name", True),
        ("controller-revision-hash", True),
        ("team", False),
        ("app.kubernetes.io/name", False),
    ],
)
def test_labels_that_would_not_reach_the_pod(label: str, refused: bool) -> None:
    spec = {**PRESET, "image": "x:1", "podTemplate": {"metadata": {"labels": {label: "mine"}}}}

    assert len(supports(deployment(spec), NEWEST, Settings())) == refused


@pytest.mark.parametrize("passes", [True, False])
def test_queue_label_is_refused_if_it_passes(passes: bool) -> None:
    labels = {QUEUE_LABEL: "models"} if passes else {}
    model = replace(deployment(PRESET), propagated_labels=labels)

    problems = supports(model, NEWEST, Settings())

    assert any("Kueue would not count them" in problem for problem in problems) == passes


def test_remedy_for_object_storage_names_only_own_engines() -> None:
    spec = {**TEMPLATE, "model": {"storage": {"uri": "s3://bucket/model"}}}

    assert supports(deployment(spec), NEWEST, Settings()) == [
        "KAITO's provider knows no loader of engine llamacpp for object storage: remove model.storage.uri, and use a "
        "volume of model.storage, or engine vllm"
    ]
