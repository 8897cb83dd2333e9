"""From a new ModelDeployment to an upstream object and back to Running, for every provider and serving mode."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind
from kubefoundry_sdk._cluster.client import Client
from support.deployments import CPU, DISAGGREGATED, GPU, model_deployment
from support.waiting import reason, serves, until, until_deployment

pytestmark = pytest.mark.integration

WORKSPACES = Kind("kaito.sh", "v1beta1", "workspaces", "Workspace")
GRAPHS = Kind("nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment")
SERVICES = Kind("ray.io", "v1", "rayservices", "RayService")


@pytest.mark.parametrize(
    ("spec", "provider", "kind", "endpoint"),
    [
        pytest.param(CPU, "kaito", WORKSPACES, ("m", 80), id="kaito llamacpp"),
        pytest.param(GPU, "kaito", WORKSPACES, ("m", 80), id="kaito preset"),
        pytest.param(GPU, "dynamo", GRAPHS, ("m-frontend", 8000), id="dynamo aggregated"),
        pytest.param(DISAGGREGATED, "dynamo", GRAPHS, ("m-frontend", 8000), id="dynamo disaggregated"),
        pytest.param(GPU, "kuberay", SERVICES, ("m-serve-svc", 8000), id="kuberay aggregated"),
        pytest.param(DISAGGREGATED, "kuberay", SERVICES, ("m-serve-svc", 8000), id="kuberay disaggregated"),
    ],
)
async def test_explicit_deployment_runs_and_goes(
    suite: Suite,
    api: Client,
    namespace: str,
    spec: dict[str, Any],
    provider: str,
    kind: Kind,
    endpoint: tuple[str, int],
) -> None:
    body = model_deployment("m", namespace, spec, provider=provider)
    made = await api.create(MODEL_DEPLOYMENTS, body, manager="test")

    running = await until_deployment(api, "m", namespace, serves)

    upstream = await api.get(kind, "m", namespace)
    [owner] = upstream["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (
        made["metadata"]["uid"],
        True,
        True,
    )
    assert upstream["metadata"]["labels"]["kubefoundry.ai/managed-by"] == "kubefoundry"
    status = running["status"]
    assert status["provider"]["name"] == provider
    assert status["provider"]["selectedReason"] == "explicit provider selection"
    assert status["provider"]["resourceKind"] == kind.kind
    assert (status["endpoint"]["service"], status["endpoint"]["port"]) == endpoint
    assert status["replicas"]["ready"] == status["replicas"]["desired"] > 0
    assert [
        reason(running, type_) for type_ in ("Validated", "ProviderSelected", "ProviderCompatible", "Ready")
    ] == ["ValidationPassed", "ExplicitlySelected", "CompatibilityVerified", "DeploymentReady"]

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    await until(api, kind, "m", namespace, lambda obj: obj is None)


@pytest.mark.parametrize(
    ("spec", "provider", "why"),
    [
        pytest.param(CPU, "kaito", "no GPU requested → kaito (only CPU provider)", id="no GPU"),
        pytest.param(GPU, "dynamo", "default → dynamo (GPU inference default)", id="GPU"),
        pytest.param(
            DISAGGREGATED,
            "dynamo",
            "mode=disaggregated → dynamo (best disaggregated support)",
            id="disaggregated",
        ),
        pytest.param(
            {**GPU, "engine": {"type": "sglang"}},
            "dynamo",
            "engine=sglang → dynamo (only sglang provider)",
            id="sglang",
        ),
        pytest.param(
            {**CPU, "resources": {"gpu": {"count": 1}}},
            "kaito",
            "engine=llamacpp → kaito (only llamacpp provider)",
            id="llamacpp on a GPU",
        ),
    ],
)
async def test_provider_is_chosen_with_the_designs_reason(
    suite: Suite, api: Client, namespace: str, spec: dict[str, Any], provider: str, why: str
) -> None:
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, spec), manager="test")

    running = await until_deployment(api, "m", namespace, serves)

    assert running["status"]["provider"]["name"] == provider
    assert running["status"]["provider"]["selectedReason"] == why
    assert reason(running, "ProviderSelected") == "AutoSelected"
