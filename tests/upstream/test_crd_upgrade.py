"""Every release of the upstream CRDs, one after the other, under objects that serve: none lost, none changed.

A provider writes to an object at most once, and only where the newest release is used in another version than the
oldest: when the operator writes a field that the version in which we applied the object lacks (KAITO's
`status.targetNodeCount` is not in v1alpha1), the API server removes all managedFields, and the provider takes its
fields back.

Prints its figures (`-s`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import kubefoundry_dynamo.probe
import kubefoundry_kaito.probe
import kubefoundry_kuberay.probe
from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.kinds import CRDS, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.watch.upstream import schema_digest
from support.audit import AuditLog
from support.deployments import GPU, model_deployment
from support.edits import ADMIN
from support.events import until_event
from support.kinds import UPSTREAM
from support.restarts import restarted
from support.suites import install_crd, running_suite
from support.upgrades import upgrade
from support.upstream import UpstreamCRD, oldest_first, requires_shared
from support.waiting import SECONDS, phase, until, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.upstream, requires_shared]

OBJECTS = 6
"""Of each provider. Each is read, converted and decided on by itself: more of them only take longer."""

PROBES = {
    "kaito": kubefoundry_kaito.probe.probe,
    "dynamo": kubefoundry_dynamo.probe.probe,
    "kuberay": kubefoundry_kuberay.probe.probe,
}
SPECS: dict[str, dict[str, Any]] = {
    "kaito": {**GPU, "image": "example.com/vllm:1.0.0"},
    "dynamo": GPU,
    "kuberay": GPU,
}
NODES = {
    "KUBEFOUNDRY_KAITO_PROVISIONING": "auto",
    "KUBEFOUNDRY_KAITO_GPU_INSTANCE_TYPE": "Standard_NC24ads_A100_v4",
}
"""The way to get nodes that every KAITO release knows alike."""


@pytest.fixture
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core, the providers, and simulated operators with their webhooks, each CRD that of its oldest release."""
    with running_suite(tmp_path_factory.mktemp("releases")) as made:
        for provider in UPSTREAM:
            install_crd(made, oldest_first(provider)[0].document)
        made.simulate(*UPSTREAM, flags=["--webhooks"])
        made.start("core", *UPSTREAM)
        with restarted(made.components["kaito"], NODES):
            yield made


async def test_every_release_under_objects_that_serve(suite: Suite, api: Client, namespace: str) -> None:
    requests = AuditLog(suite)
    before = {provider: await serving(api, namespace, provider) for provider in UPSTREAM}
    created = {provider: own_writes(requests, namespace, provider) for provider in UPSTREAM}
    since, started = AuditLog(suite), time.monotonic()

    # each provider's releases in their order, the providers side by side
    await asyncio.gather(*(walk(api, provider) for provider in UPSTREAM))

    # one more is made and served after them, so every earlier turn has been taken
    for provider in UPSTREAM:
        await create(api, namespace, provider, f"{provider}-last")
    taken = time.monotonic() - started
    after = {provider: await standing(api, namespace, provider) for provider in UPSTREAM}
    print(f"\n{len(UPSTREAM) * OBJECTS} objects, {taken:.0f} s for the releases of all three CRDs")
    for provider in UPSTREAM:
        releases = oldest_first(provider)
        lost = before[provider].keys() - after[provider].keys()
        writes = [line for line in own_writes(since, namespace, provider) if "-last?" not in line]
        print(
            f"{provider}: {releases[0]} to {releases[-1]} in {len(releases) - 1} steps, {OBJECTS} objects: "
            f"{len(lost)} lost, {len(writes)} writes by the provider (creation: {len(created[provider])}), "
            f"stored as {installed(releases[-1]).api_version}"
        )
        assert before[provider] == {
            name: one for name, one in after[provider].items() if not name.endswith("-last")
        }
        assert len(created[provider]) == OBJECTS
        newest = installed(releases[-1]).api_version
        most = 0 if installed(releases[0]).api_version == newest else 1
        assert max(Counter(writes).values(), default=0) <= most, writes
        for index in range(OBJECTS):
            live = await until_deployment(
                api,
                name_of(provider, index),
                namespace,
                partial(written_in, newest),
            )
            assert (phase(live), "endpoint" in live["status"]) == ("Running", True), live["status"]


async def test_drift_and_edits_after_a_crd_upgrade(suite: Suite, api: Client, namespace: str) -> None:
    """Drift of Dynamo, whose objects are converted, and a change that the newest release stores."""
    await create(api, namespace, "dynamo", "drifts")
    await create(api, namespace, "dynamo", "scales")
    await walk(api, "dynamo")
    kind = kind_of("dynamo", oldest_first("dynamo")[-1])
    for name in ("drifts", "scales"):
        await until_deployment(api, name, namespace, lambda obj: api_version(obj) == kind.api_version)
    since = AuditLog(suite)

    there = await converted(api, kind, "drifts", namespace)
    worker = [part["name"] for part in there["spec"]["components"]].index("VllmWorker")
    edit = {"op": "replace", "path": f"/spec/components/{worker}/replicas", "value": 7}
    await api.json_patch(kind, "drifts", namespace, [edit], manager=ADMIN)
    suite.plane.kubectl("scale", "md/scales", "-n", namespace, "--replicas=2")

    await until_event(api, namespace, "DriftDetected")
    await until(
        api,
        kind,
        "drifts",
        namespace,
        lambda obj: obj is not None and obj["spec"]["components"][worker]["replicas"] == 1,
    )
    await until_deployment(
        api, "scales", namespace, lambda obj: (obj["status"].get("replicas") or {}).get("ready") == 2
    )
    written = own_writes(since, namespace, "dynamo")
    assert sorted(re.findall(r"/(\w+)\?", " ".join(written))) == ["drifts", "scales"]
    assert all(f"/apis/{kind.api_version}/" in line for line in written)


def installed(crd: UpstreamCRD) -> Schema:
    provider = next(name for name, kind in UPSTREAM.items() if kind.crd == crd.document["metadata"]["name"])
    found = PROBES[provider](crd.document)
    assert isinstance(found, Schema)
    return found


def kind_of(provider: str, crd: UpstreamCRD) -> Kind:
    kind = UPSTREAM[provider]
    return Kind(kind.group, installed(crd).api_version.partition("/")[2], kind.plural, kind.kind)


async def walk(api: Client, provider: str) -> None:
    """Installs one release after the other, each once the provider has taken the one before up."""
    for crd in oldest_first(provider)[1:]:
        used = installed(crd).api_version
        digest = schema_digest(crd.document, used.partition("/")[2])
        await upgrade(api, crd.document)
        await until(api, PROVIDER_CONFIGS, provider, None, partial(reports, (used, digest)))
        # until the operator has said where its webhook is, nobody can read what is stored as another version
        await until(api, CRDS, crd.document["metadata"]["name"], None, converts)


async def converted(api: Client, kind: Kind, name: str, namespace: str) -> Object:
    """The object, once the API server reads it: it takes up a moment after the CRD says so where the webhook is."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                return await api.get(kind, name, namespace)
            except ApiError as error:
                if "conversion webhook" not in error.message:
                    raise
            await asyncio.sleep(PROBE)


def converts(crd: Object | None) -> bool:
    assert crd is not None
    conversion = crd["spec"].get("conversion") or {}
    return conversion.get("strategy") != "Webhook" or "url" in conversion["webhook"]["clientConfig"]


def written_in(version: str, obj: Object) -> bool:
    return api_version(obj) == version


def reports(received: tuple[str, str | None], obj: Object | None) -> bool:
    return reported(obj) == received


def reported(config: Object | None) -> tuple[str | None, str | None]:
    status = (config or {}).get("status") or {}
    return status.get("upstreamCRDVersion"), status.get("upstreamSchemaHash")


def api_version(deployment: Object) -> str:
    return str(deployment["status"]["provider"].get("resourceAPIVersion"))


def name_of(provider: str, index: int) -> str:
    return f"{provider}-{index}"


async def create(api: Client, namespace: str, provider: str, name: str) -> None:
    body = model_deployment(name, namespace, SPECS[provider], provider=provider)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, name, namespace, lambda obj: phase(obj) == "Running", seconds=300)


async def serving(api: Client, namespace: str, provider: str) -> dict[str, tuple[str, int]]:
    """Uids and generations of the upstream objects of that many ModelDeployments, all Running."""
    await asyncio.gather(
        *(create(api, namespace, provider, name_of(provider, index)) for index in range(OBJECTS))
    )
    found, _ = await api.list(kind_of(provider, oldest_first(provider)[0]), namespace)
    return identities(found)


async def standing(api: Client, namespace: str, provider: str) -> dict[str, tuple[str, int]]:
    found, _ = await api.list(kind_of(provider, oldest_first(provider)[-1]), namespace)
    return identities(found)


def identities(found: list[Object]) -> dict[str, tuple[str, int]]:
    """By name. The generation counts all changes but those of metadata and status."""
    return {obj["metadata"]["name"]: (obj["metadata"]["uid"], obj["metadata"]["generation"]) for obj in found}


def own_writes(requests: AuditLog, namespace: str, provider: str) -> list[str]:
    """Requests of the provider that changed an upstream object."""
    return requests.writes(f"provider-{provider}", namespace, UPSTREAM[provider].plural)
