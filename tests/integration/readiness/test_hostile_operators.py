"""Upstream operators write nonsense: nothing is Ready without proof, and no status causes a stream of writes."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._provider.reconcile.pace import BURST, EVERY
from support.audit import WRITES, AuditLog
from support.deployments import CPU, GPU, model_deployment
from support.foreign import foreign
from support.kinds import UPSTREAM
from support.refusing_webhook import refusing
from support.suites import install_crd, running_suite
from support.upstream import standin
from support.waiting import phase, reason, serves, until, until_deployment
from support.wishes import change_spec

pytestmark = [pytest.mark.integration, pytest.mark.sampled(2)]

KINDS: Final = {**UPSTREAM, "direct": DEPLOYMENTS}
EVERY_PROVIDER: Final = pytest.mark.parametrize("provider", KINDS)
FLAPS: Final = 20.0
"""Seconds in which an upstream status changes again and again."""
PAUSE: Final = 0.1
"""Seconds between two of these changes."""
ANYTHING: Final = {"x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core and providers without upstream operators: the tests write what these would."""
    with running_suite(tmp_path_factory.mktemp("hostile")) as made:
        for provider in UPSTREAM:
            document = copy.deepcopy(standin(provider).document)
            for version in document["spec"]["versions"]:
                schema = version["schema"]["openAPIV3Schema"]
                # Provider KAITO probes for this field.
                schema["properties"]["status"] = {
                    "type": "object",
                    "properties": {"state": ANYTHING},
                    **ANYTHING,
                }
            install_crd(made, document)
        made.start("core", *KINDS)
        yield made


def proof(provider: str, generation: int, *, up: bool = True) -> dict[str, Any]:
    """A status as the operator writes it once the pods of that generation serve, or stopped."""
    ready, count = str(up), int(up)
    pods = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": count, "availableReplicas": count}
    if provider == "direct":
        return {"observedGeneration": generation, **pods}
    if provider == "kaito":
        inference = {"type": "InferenceReady", "status": ready, "reason": "x", "message": "y"}
        return {"conditions": [{**inference, "observedGeneration": generation}]}
    condition = {"type": "Ready", "status": ready, "reason": "x", "message": "y"}
    if provider == "dynamo":
        return {
            "observedGeneration": generation,
            "state": "successful" if up else "pending",
            "conditions": [condition],
            "services": {"Frontend": pods, "VllmWorker": pods},
        }
    active = {
        "rayClusterName": "m-x",
        "applicationStatuses": {"llm": {"status": "RUNNING"}},
        "rayClusterStatus": {"readyWorkerReplicas": 1},
    }
    return {
        "observedGeneration": generation,
        "serviceStatus": "Running" if up else "",
        "numServeEndpoints": 2 * count,
        "conditions": [condition],
        "activeServiceStatus": active,
    }


async def created(api: Client, namespace: str, provider: str) -> Object:
    """The upstream object of a new ModelDeployment `m`."""
    spec = CPU if provider == "direct" else GPU
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, spec, provider=provider), manager="test"
    )
    await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") is not None)
    return await api.get(KINDS[provider], "m", namespace)


async def report(api: Client, namespace: str, provider: str, status: dict[str, Any]) -> None:
    change = [{"op": "add", "path": "/status", "value": status}]
    await api.json_patch(KINDS[provider], "m/status", namespace, change, manager="operator")


@EVERY_PROVIDER
async def test_flapping_upstream_causes_few_writes(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    live = await created(api, namespace, provider)
    generation, log = live["metadata"]["generation"], AuditLog(suite)
    start, number = time.monotonic(), 0
    while time.monotonic() - start < FLAPS:
        number += 1
        await report(api, namespace, provider, proof(provider, generation, up=number % 2 == 0))
        await asyncio.sleep(PAUSE)
    await report(api, namespace, provider, proof(provider, generation))

    await until_deployment(api, "m", namespace, serves)

    took = time.monotonic() - start
    written = log.writes(f"provider-{provider}", namespace, "modeldeployments")
    # Whatever turns Ready off is written at once, at most once for each time that it was turned on.
    most = 2 * (BURST + took / EVERY)
    print(f"\n{provider}: {number} changes upstream, {len(written)} writes of ours in {took:.0f} s")
    assert number > most
    assert len(written) <= most


async def deleted(api: Client, namespace: str) -> None:
    live = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=live["metadata"]["uid"])


async def edited(api: Client, namespace: str) -> None:
    await change_spec(api, namespace, "/spec/engine/contextLength", 4096)


async def handed_over(api: Client, namespace: str) -> None:
    await change_spec(api, namespace, "/spec/provider/name", "kuberay")


@pytest.mark.parametrize("act", [deleted, edited, handed_over])
async def test_flapping_upstream_repeats_no_denied_write(
    suite: Suite, api: Client, namespace: str, act: Callable[[Client, str], Awaitable[None]]
) -> None:
    live = await created(api, namespace, "dynamo")
    generation = live["metadata"]["generation"]
    await report(api, namespace, "dynamo", proof("dynamo", generation))
    await until_deployment(api, "m", namespace, serves)
    example = foreign("dynamo", "example", namespace)

    async with refusing(
        api,
        UPSTREAM["dynamo"],
        namespace,
        marker='"m"',
        code=403,
        words="no",
        example=example,
        operations=["UPDATE", "DELETE"],
        statuses=False,
    ):
        log = AuditLog(suite)
        await act(api, namespace)
        start, number = time.monotonic(), 0
        while time.monotonic() - start < FLAPS:
            number += 1
            await report(api, namespace, "dynamo", proof("dynamo", generation, up=number % 2 == 0))
            await asyncio.sleep(PAUSE / 2)
        took = time.monotonic() - start

    written = [
        f"{entry['verb']} {entry['requestURI']}"
        for component, entry in log.all(namespace)
        if component == "provider-dynamo"
        and entry["verb"] in WRITES
        and entry["objectRef"]["resource"] != "events"
    ]
    # Also one for each time that Ready was turned off.
    most = 2 * (BURST + took / EVERY)
    print(f"\n{number} changes upstream, {len(written)} writes of ours in {took:.0f} s")
    assert number > most
    assert len(written) <= most


UNPROVEN: Final[Sequence[Any]] = (None, "3", 2.5, True, [], -1, 99)
"""Values of an observedGeneration that name no generation of the object."""


@pytest.mark.parametrize("provider", ["dynamo", "kuberay"])
async def test_unreadable_generation_is_not_ready(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    live = await created(api, namespace, provider)
    await report(api, namespace, provider, proof(provider, live["metadata"]["generation"]))
    before = await until_deployment(api, "m", namespace, serves)
    newest = before["metadata"]["generation"] + 1
    await change_spec(api, namespace, "/spec/engine/contextLength", 4096)
    edited = await until(api, KINDS[provider], "m", namespace, lambda obj: applied(obj) == str(newest))
    assert edited is not None

    for value in UNPROVEN:
        # The server's times of two writes differ only if they are of different seconds.
        await asyncio.sleep(1.1)
        await report(api, namespace, provider, {**proof(provider, 0), "observedGeneration": value})
    await asyncio.sleep(1.1)
    unproven = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    await report(api, namespace, provider, proof(provider, edited["metadata"]["generation"]))

    after = await until_deployment(api, "m", namespace, serves)

    # Once Ready has named a generation, it keeps it.
    assert (phase(unproven), unproven["status"]["observedGeneration"]) == ("Running", newest - 1)
    assert after["status"]["observedGeneration"] == newest


def applied(obj: Object | None) -> str | None:
    """The generation of the ModelDeployment that was applied to the upstream object."""
    annotations: dict[str, str] = ((obj or {}).get("metadata") or {}).get("annotations") or {}
    return annotations.get(names.APPLIED_GENERATION_ANNOTATION)
