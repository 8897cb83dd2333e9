"""Models of every provider that serve while KubeFoundry is installed, upgraded or rolled back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk.pod import QUEUE_LABEL
from support.deployments import CPU, GPU, model_deployment
from support.model_writes import PROVIDERS
from support.waiting import phase, until_deployment


async def create_model(
    api: Client, namespace: str, name: str, provider: str, *, is_queued: bool = False
) -> None:
    """Create a model that the provider supports in every cluster, with the label of a queue of Kueue on request."""
    spec = CPU if provider == "direct" else GPU
    metadata = {"labels": {QUEUE_LABEL: "models"}} if is_queued else {}
    body = model_deployment(name, namespace, spec, provider=provider, **metadata)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")


async def create_models(api: Client, namespace: str, count: int) -> list[str]:
    """Create models of the providers in turn, and return their names.

    From the second turn on, all but those of KAITO, which refuses it, have the label of a queue.
    """
    models = [f"m-{index}" for index in range(count)]
    for index, (name, provider) in enumerate(zip(models, itertools.cycle(PROVIDERS), strict=False)):
        is_queued = index >= len(PROVIDERS) and provider != "kaito"
        await create_model(api, namespace, name, provider, is_queued=is_queued)
    return models


async def until_running(api: Client, namespace: str, names: Sequence[str]) -> None:
    """Wait until each of these models runs."""
    for name in names:
        await until_deployment(api, name, namespace, lambda obj: phase(obj) == "Running", seconds=300)


async def until_every_model_had_its_turn(api: Client, namespace: str, prefix: str) -> None:
    """Create a model of each provider, and wait until they run.

    Turns are taken in order: when later models run, all models before them have had their turn.
    """
    names = {provider: f"{prefix}-{provider}" for provider in PROVIDERS}
    for provider, name in names.items():
        await create_model(api, namespace, name, provider)
    await until_running(api, namespace, list(names.values()))


async def phases(api: Client, namespace: str, models: Sequence[str]) -> dict[str, str | None]:
    """Return the phase of each of these models; None for a missing model or phase."""
    deployments, _ = await api.list(MODEL_DEPLOYMENTS, namespace)
    named = {obj["metadata"]["name"]: phase(obj) for obj in deployments}
    return {name: named.get(name) for name in models}
