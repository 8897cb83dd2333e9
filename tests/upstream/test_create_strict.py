"""What the providers render is created on a real API server under every upstream CRD, and comes back as it was sent.

A dry run would not do: it passes where a version loses data on its way through storage (docs/compatibility.md).
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import kubefoundry_dynamo.provider
import kubefoundry_dynamo.settings
import kubefoundry_kaito.provider
import kubefoundry_kaito.settings
import kubefoundry_kuberay.provider
import kubefoundry_kuberay.settings
from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, CRDS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import PodDefaults, Provider, Rendered
from kubefoundry_sdk._provider.reconcile.compatibility import check
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.fields import IMAGES
from kubefoundry_sdk.testing.generated import Spec, deployment, specs
from kubefoundry_simulators.cluster import connect
from kubefoundry_simulators.webhooks import Webhooks, serve
from support.sampled_cases import examples
from support.upstream import UpstreamCRD, crds, requires_shared
from support.waiting import SECONDS, until

pytestmark = [pytest.mark.integration, pytest.mark.upstream, requires_shared, pytest.mark.sampled(3)]

OBJECTS = examples(20)
"""Objects created for each release and version (docs/compatibility.md)."""

POD_DEFAULTS = PodDefaults((("HTTPS_PROXY", "http://proxy.example.com"),), "company-ca/ca.crt")
"""What an administrator has set for the pods of every second object."""

PROVIDERS: dict[str, Provider] = {
    "kaito": kubefoundry_kaito.provider.provider(kubefoundry_kaito.settings.Settings()),
    "dynamo": kubefoundry_dynamo.provider.provider(kubefoundry_dynamo.settings.Settings()),
    "kuberay": kubefoundry_kuberay.provider.provider(kubefoundry_kuberay.settings.Settings()),
}


def named(provider: str, **overrides: SearchStrategy[Any]) -> SearchStrategy[Spec]:
    chosen = st.fixed_dictionaries({}, optional=overrides)
    return st.builds(lambda stated: {"name": provider, "overrides": stated}, chosen)


def kaito_specs() -> SearchStrategy[Spec]:
    """Templates, with an image; and presets, which leave little to say."""
    provider = named(
        "kaito",
        llamacppServer=st.sampled_from(["aikit", "llama-server"]),
        preferredNodes=st.just(["node-a"]),
    )
    common: dict[str, Any] = {"modes": ["aggregated"], "scaling": None, "provider": provider}
    templates = specs(engines=["vllm", "llamacpp"], image=IMAGES, **common)
    presets = specs(
        engines=["vllm"],
        model=st.just({"id": "microsoft/phi-4"}),
        image=None,
        env=None,
        podTemplate=None,
        tolerations=None,
        resources=st.just({"gpu": {"count": 1}}),
        **common,
    )
    return templates | presets


SPECS: dict[str, SearchStrategy[Spec]] = {
    "kaito": kaito_specs(),
    "dynamo": specs(
        engines=["vllm", "sglang", "trtllm"],
        provider=named("dynamo", routerMode=st.sampled_from(["kv", "round-robin"])),
    ),
    "kuberay": specs(engines=["vllm"], provider=named("kuberay")),
}


def versions(crd: UpstreamCRD) -> tuple[str, ...]:
    """The storage version; every served one where a webhook converts."""
    conversion = (crd.document["spec"].get("conversion") or {}).get("strategy")
    return crd.served_versions if conversion == "Webhook" else (crd.storage_version,)


CASES = [
    pytest.param(provider, crd, version, id=f"{provider} {crd.name} {version}")
    for provider in PROVIDERS
    for crd in crds(provider)
    for version in versions(crd)
]


def written_through(subject: Provider, crd: UpstreamCRD, version: str) -> Schema:
    """What the provider finds out about the CRD, were that version the one to write through."""
    document = copy.deepcopy(crd.document)
    for candidate in document["spec"]["versions"]:
        candidate["storage"] = candidate["name"] == version
    schema = subject.probe(document)
    assert isinstance(schema, Schema), schema
    assert schema.api_version.endswith(f"/{version}")
    return schema


@cache
def generated(provider: str) -> list[Spec]:
    """Many more specs than are needed: a release supports only some."""
    found: list[Spec] = []

    @settings(
        max_examples=15 * OBJECTS,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(SPECS[provider])
    def collect(spec: Spec) -> None:
        found.append(spec)

    collect()
    return found


def rendered(subject: Provider, schema: Schema) -> list[Rendered]:
    """What the provider supports of the generated specs, evenly chosen: the first ones are the plainest."""
    supported = [
        spec for spec in generated(subject.name) if not check(subject, deployment(spec), schema).problems
    ]
    assert len(supported) >= OBJECTS, f"{subject.title} supports only {len(supported)} of the generated specs"
    chosen = supported[:: len(supported) // OBJECTS][:OBJECTS]
    with_defaults = replace(subject, pod_defaults=POD_DEFAULTS)
    return [
        results.render(with_defaults if number % 2 else subject, deployment(spec, name=f"m-{number}"), schema)
        for number, spec in enumerate(chosen)
    ]


@pytest.fixture
async def webhooks(cluster: ControlPlane) -> AsyncIterator[Webhooks]:
    """The simulated operators' conversion server."""
    connection = await connect(cluster.kubeconfig)
    running = await serve(connection)
    yield running
    await running.close()
    await connection.close()


@asynccontextmanager
async def installed(api: Client, crd: UpstreamCRD, webhooks: Webhooks, version: str) -> AsyncIterator[Kind]:
    """The CRD in place of another release's, conversions sent to our server; its kind, once it is served."""
    document = copy.deepcopy(crd.document)
    spec = document["spec"]
    if (spec.get("conversion") or {}).get("strategy") == "Webhook":
        spec["conversion"]["webhook"]["clientConfig"] = webhooks.conversion_client
    await uninstall(api, crd)
    await api.apply(CRDS, document, manager="upstream-tests")
    kind = Kind(spec["group"], version, spec["names"]["plural"], spec["names"]["kind"])
    try:
        await served(api, kind)
        yield kind
    finally:
        await uninstall(api, crd)


async def served(api: Client, kind: Kind) -> None:
    """Until it is: Established comes before, and no event tells when the server is ready."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await api.list(kind, "default")
                return
            except ApiError as error:
                if error.code not in (404, 429):
                    raise
            await asyncio.sleep(0.1)


async def uninstall(api: Client, crd: UpstreamCRD) -> None:
    """Without its objects, if it is there; waits until it is gone."""
    name = crd.document["metadata"]["name"]
    found, _ = await api.list(CRDS, selector={"fieldSelector": f"metadata.name={name}"})
    for installed in found:
        await api.delete(CRDS, name, None, uid=installed["metadata"]["uid"])
        await until(api, CRDS, name, None, lambda it: it is None)


def lost(sent: Any, back: Any, path: str = "") -> Iterator[str]:
    """Where what came back differs from what was sent; more than was sent is fine (defaults)."""
    if isinstance(sent, dict) and isinstance(back, dict):
        for name, value in sent.items():
            if name not in back:
                yield f"{path}.{name}: lost, was {value!r}"
            else:
                yield from lost(value, back[name], f"{path}.{name}")
    elif isinstance(sent, list) and isinstance(back, list) and len(sent) == len(back):
        for index, (value, returned) in enumerate(zip(sent, back, strict=True)):
            yield from lost(value, returned, f"{path}[{index}]")
    elif sent != back:
        yield f"{path}: sent {sent!r}, came back {back!r}"


async def create(api: Client, kind: Kind, namespace: str, body: Object) -> list[str]:
    """What was lost of the object, if it was created at all."""
    sent = {**body, "metadata": {**body["metadata"], "namespace": namespace}}
    try:
        await api.create(kind, sent, manager="upstream-tests")
    except ApiError as error:
        return [f"refused: {error}"]
    return list(lost(sent, await api.get(kind, sent["metadata"]["name"], namespace)))


@pytest.mark.parametrize(("provider", "crd", "version"), CASES)
async def test_created_objects_are_stored_unchanged(
    provider: str, crd: UpstreamCRD, version: str, api: Client, namespace: str, webhooks: Webhooks
) -> None:
    subject = PROVIDERS[provider]
    schema = written_through(subject, crd, version)

    problems = []
    async with installed(api, crd, webhooks, version) as kind:
        for body in rendered(subject, schema):
            for helper in body.helpers:
                problems += await create(api, CONFIG_MAPS, namespace, helper)
            problems += await create(api, kind, namespace, body.main)

    assert problems == []
