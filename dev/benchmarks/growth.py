"""Growth with the number of models (m): memory, start, edits and requests at rest at n/10 and at n models."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from typing import Final

from benchmarks import memory, requests
from benchmarks.burst import AT_ONCE
from benchmarks.fairness import PROVIDER, REPLICAS, measure_edit
from benchmarks.figures import Figure, Section, percentile
from benchmarks.latency import measure_creation
from benchmarks.rig import GPU, MANAGER, Rig, deployment, say
from benchmarks.startup import measure_start
from kubefoundry_sdk._api.kinds import PROVIDER_CONFIGS, Object

PROVIDERS: Final = 20
RULES: Final = 5
"""Rules of each provider. None of them ever selects it, so all rules of all providers are evaluated."""

NAMESPACES: Final = 20
"""Namespaces of the models: the objects of one may take a third of a process's memory for a kind (contract §6)."""

SAMPLES: Final = 20
"""Edits and creations at each size."""

SHARE: Final = 10
"""The smaller size is n divided by this. A figure that grows faster than the models grows by more than this."""

CHUNK: Final = 500
"""Models that are created before those before them have to run: the wait for one chunk is bounded."""


async def with_many_models(rig: Rig, n: int) -> Section:
    """Measure section m. The models stay."""
    for number in range(PROVIDERS):
        await _register(rig, f"provider-{number}")
    namespaces = [await rig.namespace() for _ in range(NAMESPACES)]
    bodies = [deployment(f"many-{index}", namespaces[index % NAMESPACES], GPU) for index in range(n)]
    few = n // SHARE
    small = await _at_size(rig, bodies[:few], few)
    large = await _at_size(rig, bodies[few:], n)
    figures = [figure for pair in zip(small, large, strict=True) for figure in pair]
    return Section(
        "m",
        f"Growth from {few:,} to {n:,} models",
        f"{n:,} ModelDeployments in {NAMESPACES} namespaces, without a named provider, beside {PROVIDERS} further "
        f"providers with {RULES} rules each, all Running. At both sizes: resident memory, the time from the start of "
        f"a process to its first effect, the p50 of {SAMPLES} edits and of {SAMPLES} creations until the upstream "
        "object shows them, and the requests of our processes in a minute without a change.",
        figures,
    )


async def _register(rig: Rig, name: str) -> None:
    """Register a provider whose rules do not select it."""
    head = {
        "apiVersion": PROVIDER_CONFIGS.api_version,
        "kind": PROVIDER_CONFIGS.kind,
        "metadata": {"name": name},
    }
    rules = [
        {
            "condition": f"spec.resources.gpu.count > {99 + number} && spec.model.id.startsWith('{name}/')",
            "priority": 99,
        }
        for number in range(RULES)
    ]
    capabilities = {"engines": ["vllm"], "servingModes": ["aggregated"], "gpuSupport": True}
    spec = {"capabilities": capabilities, "selectionRules": rules}
    await rig.client.apply(PROVIDER_CONFIGS, {**head, "spec": spec}, manager=MANAGER)
    await rig.client.apply_status(PROVIDER_CONFIGS, {**head, "status": {"ready": True}}, manager=MANAGER)


async def _at_size(rig: Rig, more: Sequence[Object], size: int) -> list[Figure]:
    """Create more models, and return the figures once there are `size`."""
    say(f"m. {size} models")
    for start in range(0, len(more), CHUNK):
        await rig.run_all(more[start : start + CHUNK], AT_ONCE)
    figures = [
        Figure(f"{name}: memory with {size:,}", megabytes, "MB")
        for name, megabytes in memory.resident(rig).items()
    ]
    namespace = await rig.namespace()
    edits = await _edits(rig, namespace)
    creations = [
        await measure_creation(rig, PROVIDER, deployment(f"selected-{index}", namespace, GPU))
        for index in range(SAMPLES)
    ]
    figures += [
        Figure(f"an edit with {size:,}: p50", percentile(edits, 0.5), "ms"),
        Figure(f"a selected model with {size:,}: p50", percentile(creations, 0.5), "ms"),
    ]
    # Core writes to a new model once more within a minute (contract §3), so the first window is no rest.
    await requests.in_a_window(rig)
    at_rest = requests.total(await requests.in_a_window(rig), "work", "Event")
    figures.append(Figure(f"requests at rest with {size:,}, without Leases and heartbeats", at_rest, ""))
    for name in rig.suite.components:
        seconds = await measure_start(rig, name, namespace, crash=False)
        figures.append(Figure(f"{name}: start with {size:,}", seconds, "s"))
    await rig.clear(namespace)
    return figures


async def _edits(rig: Rig, namespace: str) -> list[float]:
    """Return the milliseconds of each edit of a model."""
    key = (namespace, "edited")
    await rig.run_all([deployment(key[1], namespace, GPU, PROVIDER)])
    taken = []
    for replicas in islice(cycle(REPLICAS), SAMPLES):
        taken.append(await measure_edit(rig, key, replicas))
        await rig.quiet()
    return taken
