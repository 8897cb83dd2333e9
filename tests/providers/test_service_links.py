"""Rendered pods get no variables of the namespace's Services, and the upgrade that disables them restarts nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_direct.provider import provider as direct
from kubefoundry_direct.settings import Settings as DirectSettings
from kubefoundry_dynamo.provider import provider as dynamo
from kubefoundry_dynamo.settings import Settings as DynamoSettings
from kubefoundry_kaito.provider import provider as kaito
from kubefoundry_kaito.settings import Settings as KaitoSettings
from kubefoundry_kuberay.provider import provider as kuberay
from kubefoundry_kuberay.settings import Settings as KubeRaySettings
from kubefoundry_sdk._provider.contract import Deployment, Provider, Rendered
from kubefoundry_sdk._provider.upstream_kind import Schema
from support.plans import deployment, planned

VLLM: dict[str, Any] = {
    "model": {"id": "org/m"},
    "engine": {"type": "vllm", "trustRemoteCode": True},
    "resources": {"gpu": {"count": 1}},
    "scaling": {"replicas": 1},
}
DISAGGREGATED: dict[str, Any] = {
    "model": {"id": "org/m"},
    "engine": {"type": "vllm"},
    "serving": {"mode": "disaggregated"},
    "scaling": {role: {"replicas": 1, "gpu": {"count": 1}} for role in ("prefill", "decode")},
}
SUBJECTS: Mapping[str, tuple[Provider, Schema, dict[str, Any]]] = {
    "kaito": (kaito(KaitoSettings()), Schema("kaito.sh/v1beta1"), {**VLLM, "image": "example.com/vllm:1"}),
    "dynamo v1alpha1": (dynamo(DynamoSettings()), Schema("nvidia.com/v1alpha1"), VLLM),
    "dynamo v1beta1": (dynamo(DynamoSettings()), Schema("nvidia.com/v1beta1", frozenset({"v1beta1"})), VLLM),
    "dynamo disaggregated": (dynamo(DynamoSettings()), Schema("nvidia.com/v1alpha1"), DISAGGREGATED),
    "kuberay": (kuberay(KubeRaySettings()), Schema("ray.io/v1"), VLLM),
    "kuberay disaggregated": (kuberay(KubeRaySettings()), Schema("ray.io/v1"), DISAGGREGATED),
    "direct": (direct(DirectSettings()), Schema("apps/v1"), VLLM),
}
CHANGES: Mapping[str, dict[str, Any]] = {
    "nothing": {},
    "context": {"engine": {"type": "vllm", "trustRemoteCode": True, "contextLength": 4096}},
    "environment": {"env": [{"name": "A", "value": "b"}]},
    "node selector": {"nodeSelector": {"a": "b"}},
    "tolerations": {"tolerations": [{"key": "a", "operator": "Exists"}]},
    "labels": {"podTemplate": {"metadata": {"labels": {"a": "b"}}}},
    "image": {"image": "example.com/vllm:2.56.0"},
}


def pod_specs(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the pod specs in a manifest, Dynamo's `extraPodSpec` included."""
    if isinstance(value, dict):
        if "containers" in value or "mainContainer" in value:
            yield value
        for part in value.values():
            yield from pod_specs(part)
    elif isinstance(value, list):
        for part in value:
            yield from pod_specs(part)


def earlier(provider: Provider) -> Provider:
    """Return the provider as it was when it left service links on."""

    def render(model: Deployment, schema: Schema) -> Rendered:
        rendered = provider.render(model, schema)
        for pod in pod_specs(rendered.main):
            del pod["enableServiceLinks"]
        return rendered

    return replace(provider, render=render)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_rendered_pods_have_no_service_links(subject: str) -> None:
    provider, schema, spec = SUBJECTS[subject]

    pods = list(pod_specs(provider.render(deployment(spec), schema).main))

    assert pods
    assert [pod.get("enableServiceLinks") for pod in pods] == [False] * len(pods)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_upgrade_leaves_service_links_of_an_existing_object(subject: str, change: str) -> None:
    provider, schema, spec = SUBJECTS[subject]
    if "disaggregated" in subject and change == "context":
        change = "tolerations"
    before = planned(deployment(spec), subject=earlier(provider), schema=schema)

    todo = planned(deployment({**spec, **CHANGES[change]}), before, provider, schema)

    assert (todo.changed == []) is (change == "nothing")
    assert [pod for pod in pod_specs(todo.main) if "enableServiceLinks" in pod] == []
