"""A model without an engine, on a real API server with real processes: selected once, then kept."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine
from support.deployments import GPU, model_deployment
from support.registrations import register, until_judged
from support.suites import install_crd
from support.upstream import standin
from support.waiting import message, serves, until, until_deployment

pytestmark = pytest.mark.integration

NO_ENGINE: dict[str, Any] = {key: value for key, value in GPU.items() if key != "engine"}
GRAPHS = Kind("nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment")


def is_ready(config: Object | None) -> Any:
    return config and (config.get("status") or {}).get("ready")


async def start(suite: Suite, api: Client) -> None:
    install_crd(suite, standin("dynamo").document)
    suite.simulate("dynamo")
    suite.start("core", "selector", "dynamo")
    await until(api, PROVIDER_CONFIGS, "dynamo", None, is_ready)


async def edit(api: Client, namespace: str, *operations: dict[str, Any]) -> int:
    """Change the spec, and return the new generation."""
    edited = await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, list(operations), manager="user")
    generation: int = edited["metadata"]["generation"]
    return generation


def serves_at(generation: int) -> Any:
    return lambda obj: serves(obj) and obj["status"].get("observedGeneration") == generation


@pytest.mark.parametrize("named", [None, "dynamo"], ids=["selected", "named"])
async def test_model_without_engine_runs_and_keeps_it(
    fresh: Suite, api: Client, namespace: str, named: str | None
) -> None:
    await start(fresh, api)

    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, NO_ENGINE, provider=named), manager="user"
    )
    first = await until_deployment(api, "m", namespace, serves)
    uid = (await api.get(GRAPHS, "m", namespace))["metadata"]["uid"]

    assert first["status"]["provider"]["name"] == "dynamo"
    assert first["status"]["provider"]["engine"] == "vllm"
    assert "vllm" in message(first, "ProviderSelected")

    # Others of a higher priority, in another order, while the processes start again.
    for name in ("selector", "core", "dynamo"):
        fresh.components[name].stop()
    await register(api, "a", ("true", 900), engines=("sglang",))
    fresh.start("core", "selector", "dynamo")
    await until_judged(api, await register(api, "b", ("true", 950), engines=("vllm", "trtllm")))
    replicas = {"op": "add", "path": "/spec/scaling", "value": {"replicas": 2}}
    kept = await until_deployment(api, "m", namespace, serves_at(await edit(api, namespace, replicas)))
    assert kept["status"]["provider"]["name"] == "dynamo"
    assert kept["status"]["provider"]["engine"] == "vllm"

    # The status is emptied: the provider knows which engine serves.
    empty = [{"op": "remove", "path": "/status"}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, empty, manager="admin", subresource="/status")
    # The provider restores the engine, and core or the selector the name.
    chosen = {"name": "dynamo", "engine": "vllm"}
    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: serves(obj) and chosen.items() <= (obj["status"].get("provider") or {}).items(),
    )

    # The same engine in the spec, and out of it again, changes nothing upstream.
    put = {"op": "add", "path": "/spec/engine/type", "value": "vllm"}
    stated = await until_deployment(api, "m", namespace, serves_at(await edit(api, namespace, put)))
    assert "engine" not in stated["status"]["provider"]
    out = {"op": "remove", "path": "/spec/engine/type"}
    again = await until_deployment(api, "m", namespace, serves_at(await edit(api, namespace, out)))
    assert again["status"]["provider"]["engine"] == "vllm"
    assert (await api.get(GRAPHS, "m", namespace))["metadata"]["uid"] == uid


async def test_commands_foresee_the_selected_engine(fresh: Suite, api: Client, namespace: str) -> None:
    await start(fresh, api)
    command = CommandLine(fresh.plane.kubeconfig, namespace)
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, NO_ENGINE), manager="user")
    await until_deployment(api, "m", namespace, serves)

    unchanged = await command("plan", "m")
    same = await command("plan", "m", "--set", "engine.type=vllm")
    other = await command("plan", "m", "--set", "engine.type=sglang")
    refused = await command("plan", "m", "--set", "resources=")
    explained = await command("explain", "m")

    assert "UNCHANGED" in unchanged.out
    assert "UNCHANGED" in same.out
    assert "RECREATED" in other.out
    assert "vLLM engine requires GPU" in refused.err
    assert explained.out.startswith(
        "dynamo is selected: default → dynamo (GPU inference default); engine vllm"
    )
