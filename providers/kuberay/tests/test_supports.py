"""What KubeRay refuses, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_kuberay.provider import provider
from kubefoundry_kuberay.settings import Settings
from kubefoundry_sdk._provider.reconcile.compatibility import check
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment

Spec = dict[str, Any]

NEW = Schema("ray.io/v1", frozenset({"suspend"}))
OLD = Schema("ray.io/v1")
KUBERAY = provider(Settings())


def spec(gpus: int = 1, **fields: Any) -> Spec:
    return {
        "model": {"id": "org/model"},
        "engine": {"type": "vllm"},
        "resources": {"gpu": {"count": gpus}},
    } | fields


def with_args(args: dict[str, str], gpus: int = 1, engine: Spec | None = None) -> Spec:
    return spec(gpus, engine={"type": "vllm", **(engine or {}), "args": args})


def roles(prefill: Spec | None = None, decode: Spec | None = None, **fields: Any) -> Spec:
    role = {"gpu": {"count": 1}, "memory": "1Gi"}
    return {
        "model": {"id": "org/model"},
        "engine": {"type": "vllm"},
        "serving": {"mode": "disaggregated"},
        "scaling": {"prefill": role | (prefill or {}), "decode": role | (decode or {})},
    } | fields


def problems(given: Spec, name: str = "m", schema: Schema | None = NEW) -> tuple[str, ...]:
    return check(KUBERAY, deployment(given, name), schema).problems


@pytest.mark.parametrize("name", ["m", "a-b", "m1", "a" * 47])
def test_names_that_kuberay_takes(name: str) -> None:
    assert problems(spec(), name) == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a" * 48,
            f"KubeRay names have at most 47 characters, but {'a' * 48} has 48: create the ModelDeployment under a "
            "shorter name",
        ),
        (
            "1m",
            "KubeRay names begin with a letter and contain only lower-case letters, digits and inner dashes, but 1m "
            "does not: create the ModelDeployment under another name",
        ),
        (
            "a.b",
            "KubeRay names begin with a letter and contain only lower-case letters, digits and inner dashes, but a.b "
            "does not: create the ModelDeployment under another name",
        ),
    ],
)
def test_names_that_kuberay_does_not_take(name: str, text: str) -> None:
    assert problems(spec(), name) == (text,)


ZERO = (
    "KubeRay cannot scale to zero here: the installed RayService CRD has no spec.suspend; install KubeRay 1.7 "
    "or newer, or request at least 1 replica"
)


@pytest.mark.parametrize("given", [spec(scaling={"replicas": 0}), roles({"replicas": 0}, {"replicas": 0})])
@pytest.mark.parametrize(("schema", "expected"), [(NEW, ()), (OLD, (ZERO,)), (None, ())])
def test_zero_replicas_need_suspend(given: Spec, schema: Schema | None, expected: tuple[str, ...]) -> None:
    assert problems(given, schema=schema) == expected


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            with_args({"host": "0.0.0.0"}),
            "KubeRay does not support engine.args host: Ray Serve listens for requests itself; remove it",
        ),
        (
            with_args({"port": "80"}),
            "KubeRay does not support engine.args port: Ray Serve listens for requests itself, on port 8000; "
            "remove it",
        ),
        (
            with_args({"data-parallel-size": "2"}),
            "KubeRay does not support engine.args data-parallel-size: KubeRay runs one engine a replica; remove it "
            "and use scaling.replicas",
        ),
        (
            with_args({"api-key": "secret"}),
            "KubeRay does not support engine.args api-key: Ray Serve answers requests in place of vLLM's HTTP server "
            "and would not obey it; remove it",
        ),
        (
            with_args({"ssl_keyfile": "/key"}),
            "KubeRay does not support engine.args ssl-keyfile: Ray Serve answers requests in place of vLLM's HTTP "
            "server and would not obey it; remove it",
        ),
        (
            with_args({"distributed-executor-backend": "mp"}),
            "KubeRay does not support engine.args distributed-executor-backend 'mp': engines run on Ray; remove it",
        ),
        (
            with_args({"max-model-len": "4096"}, engine={"contextLength": 8192}),
            "engine.args max-model-len is '4096', but engine.contextLength is 8192: state it in "
            "engine.contextLength only",
        ),
        (
            with_args({"trust-remote-code": ""}),
            "engine.args trust-remote-code is '', but engine.trustRemoteCode is false: state it in "
            "engine.trustRemoteCode only",
        ),
        (
            with_args({"served-model-name": "other"}),
            "engine.args served-model-name is 'other', but model.servedName is \"model\": state it in "
            "model.servedName only",
        ),
        (
            with_args({"model": "org/other"}),
            "engine.args model is 'org/other', but model.id is \"org/model\": state it in model.id only",
        ),
        (
            spec(image="rayproject/ray-llm:2.46.0-py311-cu124"),
            "KubeRay needs an image with Ray 2.52 or newer, rayproject/ray-llm:2.46.0-py311-cu124 has Ray "
            "2.46.0: use a newer image",
        ),
        (
            spec(podTemplate={"metadata": {"labels": {"ray.io/cluster": "x"}}}),
            "KubeRay and Kubernetes set pod label ray.io/cluster themselves: remove it from "
            "podTemplate.metadata.labels",
        ),
        (
            spec(model={"id": "/models/llama/"}),
            "KubeRay needs a name for the model, but model.id /models/llama/ gives none: set model.servedName",
        ),
        (
            spec(scaling={"replicas": 1001}),
            "KubeRay supports at most 1000 replicas here, scaling.replicas is 1001: lower it",
        ),
        (
            spec(provider={"name": "kuberay", "overrides": {"head": {"resources": {"cpu": "two"}}}}),
            'provider.overrides head.resources.cpu: \'two\' is not a quantity: write it like "16Gi", "500m" or 4',
        ),
        (
            spec(provider={"name": "kuberay", "overrides": {"head": {"rayStartParams": 4}}}),
            "overrides.head.rayStartParams: must be a map, but is a whole number",
        ),
        (
            spec(provider={"name": "kuberay", "overrides": {"head": {"rayStartParams": {"num-cpus": 0}}}}),
            "overrides.head.rayStartParams.num-cpus: must be text, but is a whole number",
        ),
    ],
)
def test_refusals(given: Spec, text: str) -> None:
    assert problems(given) == (text,)


@pytest.mark.parametrize(
    "given",
    [
        with_args({"max-model-len": "8192"}, engine={"contextLength": 8192}),
        with_args({"max-model-len": "4096"}),
        with_args({"trust-remote-code": ""}, engine={"trustRemoteCode": True}),
        with_args({"trust-remote-code": "false"}),
        with_args({"enable-auto-tool-choice": "", "tool-call-parser": "hermes"}),
        spec(provider={"name": "kuberay", "overrides": {"head": {"resources": {"cpu": 4, "memory": "8Gi"}}}}),
        spec(provider={"name": "kuberay", "overrides": {"head": {"imagePullSecrets": ["registry"]}}}),
        with_args({"model": "org/model", "served-model-name": "model"}),
        with_args({"distributed-executor-backend": "ray", "data-parallel-size": "1"}),
        with_args({"tensor-parallel-size": "2", "pipeline-parallel-size": "2"}, gpus=8),
        spec(image="team/engine:1.0.0"),
        spec(model={"id": "/models/llama/", "servedName": "llama"}),
        roles(),
    ],
)
def test_spec_without_contradiction_is_accepted(given: Spec) -> None:
    assert problems(given) == ()


def test_unknown_override_keys_are_warned_about_at_every_depth() -> None:
    overrides = {"head": {"resources": {"cpus": "4"}, "rayStartParams": {"any-key": "x"}}, "haed": {}}

    compatibility = check(
        KUBERAY, deployment(spec(provider={"name": "kuberay", "overrides": overrides})), NEW
    )

    assert compatibility.problems == ()
    assert compatibility.warning == (
        "Ignored unknown provider.overrides: head.resources.cpus, haed; "
        "KubeRay supports head.resources.cpu, head.resources.memory, head.rayStartParams, head.imagePullSecrets"
    )
