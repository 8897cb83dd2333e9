"""What a provider knows of its upstream kind as the CRD comes, changes and goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._provider.contract import (
    Capabilities,
    Endpoint,
    Observation,
    Provider,
    Rendered,
    Replicas,
)
from kubefoundry_sdk._provider.registration import upstream_condition
from kubefoundry_sdk._provider.upstream_kind import Schema, UnsupportedSchema, UpstreamKind
from kubefoundry_sdk._provider.watch.upstream import (
    AGAIN,
    TAKEN_UP,
    UNLISTED,
    Upstream,
    addressed,
    schema_digest,
)
from kubefoundry_sdk._runtime import options
from kubefoundry_sdk._runtime.outage_clock import OutageClock
from kubefoundry_sdk._runtime.process import Process

Told = list[str | None]


def probe(crd: dict[str, Any]) -> Schema | UnsupportedSchema:
    version = crd["spec"]["versions"][0]["name"]
    return Schema(f"acme.io/{version}") if version != "v0" else UnsupportedSchema(("acme.io/v1",))


ACME = Provider(
    name="acme",
    title="Acme",
    version="0.1.0",
    documentation="",
    capabilities=Capabilities(("vllm",), ("aggregated",), cpu_support=True, gpu_support=True),
    upstream=UpstreamKind("acme.io", "models", "Model"),
    probe=probe,
    supports=lambda deployment, schema: [],
    render=lambda deployment, schema: Rendered({}),
    observe=lambda deployment, live: Observation(
        "Pending", "Progressing", "", Replicas(0, 0, 0), Endpoint("", 1)
    ),
    names_generation=True,
)


def crd(version: str = "v1", *, deleted: bool = False) -> dict[str, Any]:
    metadata = {
        "name": "models.acme.io",
        **({"deletionTimestamp": "2026-03-01T00:00:00Z"} if deleted else {}),
    }
    return {"metadata": metadata, "spec": {"versions": [{"name": version}]}}


@pytest.fixture
def followed() -> tuple[Upstream, Told]:
    """Not running; the second is the version that was known at each change that was reported."""
    return follow(ACME)


def follow(provider: Provider) -> tuple[Upstream, Told]:
    chosen = options.parser("t", "").parse_args([])
    process = Process("t", chosen, Client(Credentials("", None, lambda: None), user_agent="t"))
    received: Told = []
    upstream = Upstream(
        process,
        provider,
        "acme-provider",
        lambda: received.append(upstream.kind.version if upstream.kind else None),
    )
    return upstream, received


@pytest.mark.parametrize(
    ("listing", "kind", "received"),
    [
        pytest.param([], None, [None], id="no CRD"),
        pytest.param([crd()], "v1", ["v1"], id="a CRD"),
        pytest.param([crd("v0")], None, [None], id="one that cannot be written"),
        pytest.param([crd(deleted=True)], None, [None], id="one that is being deleted"),
    ],
)
def test_first_list_of_the_crd_is_always_reported(
    followed: tuple[Upstream, Told], listing: list[dict[str, Any]], kind: str | None, received: Told
) -> None:
    upstream, seen = followed

    upstream.replace(listing, "1")

    assert upstream.listed
    assert (upstream.kind.version if upstream.kind else None) == kind
    assert seen == received


def test_changes_are_reported_and_repetitions_are_not(followed: tuple[Upstream, Told]) -> None:
    upstream, seen = followed
    upstream.replace([], "1")

    for event in (crd(), crd(), crd("v2"), crd("v2", deleted=True), crd("v2", deleted=True)):
        upstream.put(event)
    upstream.remove(crd("v2", deleted=True))
    upstream.replace([], "9")
    upstream.put(crd("v0"))
    upstream.put(crd("v2"))

    assert seen == [None, "v1", "v2", None, None, "v2"]


@pytest.mark.parametrize(
    ("before", "versions", "through"),
    [
        pytest.param("v1", {"v0": "stored", "v1": "served"}, "v1", id="the one until now"),
        pytest.param("v1", {"v0": "stored", "v2": "served"}, "v0", id="else the stored one"),
        pytest.param(None, {"v0": "", "v2": "served"}, "v2", id="else a served one"),
        pytest.param("v1", {"v0": ""}, None, id="none is served"),
    ],
)
def test_unsupported_crd_is_addressed_by_a_served_version(
    before: str | None, versions: dict[str, str], through: str | None
) -> None:
    listed = [
        {"name": name, "served": what != "", "storage": what == "stored"} for name, what in versions.items()
    ]

    version = addressed({"spec": {"versions": listed}}, UnsupportedSchema(("spec.x",)), before)

    assert version == through


def test_removed_crd_field_keeps_objects_watched(followed: tuple[Upstream, Told]) -> None:
    upstream, seen = followed
    upstream.replace([crd()], "1")
    lacking = crd("v0")
    lacking["spec"]["versions"].append({"name": "v1", "served": True, "storage": True})

    upstream.put(lacking)

    assert upstream.schema == UnsupportedSchema(("acme.io/v1",))
    assert seen == ["v1", "v1"]


@pytest.mark.parametrize(
    ("spec", "missing"),
    [
        ({}, ()),
        ({"scope": "Namespaced", "names": {"kind": "Model"}}, ()),
        ({"scope": "Cluster", "names": {"kind": "Model"}}, ("scope Namespaced",)),
        ({"scope": "Namespaced", "names": {"kind": "Other"}}, ("kind Model",)),
        ({"scope": "Cluster", "names": {"kind": "Other"}}, ("kind Model", "scope Namespaced")),
    ],
)
def test_crd_of_another_scope_or_kind_is_not_supported(
    followed: tuple[Upstream, Told], spec: dict[str, Any], missing: tuple[str, ...]
) -> None:
    upstream, _ = followed
    obj = crd()

    upstream.defined({**obj, "spec": {**obj["spec"], **spec}})

    expected = UnsupportedSchema(missing) if missing else Schema("acme.io/v1")
    assert upstream.schema == expected


def test_schema_digest_ignores_descriptions() -> None:
    def installed(schema: dict[str, Any]) -> dict[str, Any]:
        return {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}

    named = {"properties": {"description": {"type": "string"}, "required": {"type": "boolean"}}}
    published = {**named, "description": "Words.", "required": []}

    assert schema_digest(installed(published), "v1") == schema_digest(installed(named), "v1")
    assert schema_digest(installed(named), "v1") != schema_digest(installed({"properties": {}}), "v1")
    assert schema_digest(installed(named), "v2") is None


@pytest.mark.parametrize(
    ("status", "names_generation"),
    [
        pytest.param({"properties": {"observedGeneration": {"type": "integer"}}}, True, id="declared"),
        pytest.param({"properties": {"state": {"type": "string"}}}, False, id="not declared"),
        pytest.param({"x-kubernetes-preserve-unknown-fields": True}, False, id="any field"),
        pytest.param("odd", False, id="no schema"),
    ],
)
def test_crd_shows_whether_a_status_names_its_generation(
    followed: tuple[Upstream, Told], status: Any, names_generation: bool
) -> None:
    upstream, seen = followed
    upstream.replace([crd()], "1")
    assert not upstream.names_generation

    declaring = crd()
    declaring["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {"properties": {"status": status}}}
    upstream.put(declaring)

    assert upstream.names_generation is names_generation
    # Each model is judged again by the new schema.
    assert seen == ["v1", "v1"]


def test_status_has_to_name_its_generation_if_its_operator_does() -> None:
    declaring = crd()
    status = {"properties": {"observedGeneration": {"type": "integer"}}}
    declaring["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {"properties": {"status": status}}}

    for names_generation in (True, False):
        upstream, _ = follow(replace(ACME, names_generation=names_generation))
        upstream.replace([declaring], "1")
        assert upstream.names_generation is names_generation


def test_refusal_is_retried_soon_after_a_crd_change() -> None:
    now = 0.0
    chosen = options.parser("t", "").parse_args([])
    process = Process("t", chosen, Client(Credentials("", None, lambda: None), user_agent="t"))
    upstream = Upstream(process, ACME, "acme-provider", lambda: None, clock=lambda: now)
    now = TAKEN_UP
    before = upstream.worth_another_try(300)
    upstream.put(crd())
    changed = upstream.worth_another_try(300), upstream.worth_another_try(1)
    upstream.put(crd())
    now = 2 * TAKEN_UP
    after = upstream.worth_another_try(300)

    assert (before, changed, after) == (300, (AGAIN, 1), 300)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            ApiError(500, "InternalError", "conversion webhook failed"),
            "500 InternalError: conversion webhook failed; check the Acme operator and its webhooks",
        ),
        (
            ApiError(403, "Forbidden", "User a cannot list models"),
            "403 Forbidden: User a cannot list models; grant the provider that permission: "
            "apply its manifest again",
        ),
    ],
    ids=["operator", "permission"],
)
def test_kind_is_unlisted_when_listing_keeps_failing(error: ApiError, expected: str) -> None:
    now = 0.0
    chosen = options.parser("t", "").parse_args([])
    process = Process("t", chosen, Client(Credentials("", None, lambda: None), user_agent="t"))
    process.outage_clock = OutageClock(lambda: now)
    process.outage_clock.sees("another watch")
    changes: list[str | None] = []
    upstream = Upstream(process, ACME, "acme-provider", lambda: changes.append(upstream.unlisted))

    for _ in range(3):
        upstream.listing(error)
        now += UNLISTED / 2
    upstream.listing(error)
    upstream.listing(Unreachable("nobody answers"))
    [message] = changes
    upstream.listing(None)

    assert message == f"Model objects cannot be listed: {expected}"
    assert changes == [message, None]
    assert upstream_condition(ACME, Schema("acme.io/v1"), message) == {
        "type": "UpstreamReady",
        "status": "False",
        "reason": "ListFailed",
        "message": message,
    }


def test_outage_of_the_server_is_not_unlisted() -> None:
    now = 0.0
    chosen = options.parser("t", "").parse_args([])
    process = Process("t", chosen, Client(Credentials("", None, lambda: None), user_agent="t"))
    process.outage_clock = OutageClock(lambda: now)
    upstream = Upstream(process, ACME, "acme-provider", lambda: None)

    process.outage_clock.fails("every watch")
    for _ in range(10):
        upstream.listing(ApiError(503, "ServiceUnavailable", "etcd is away"))
        now += UNLISTED

    assert upstream.unlisted is None


async def test_kind_of_kubernetes_is_available_without_crd() -> None:
    deployments = replace(ACME, upstream=UpstreamKind("apps", "deployments", "Deployment", "v1"))
    chosen = options.parser("t", "").parse_args([])
    process = Process("t", chosen, Client(Credentials("", None, lambda: None), user_agent="t"))
    received: list[bool] = []
    upstream = Upstream(process, deployments, "acme-provider", lambda: received.append(upstream.listed))

    await upstream.run()

    assert received == [True]
    assert upstream.schema == Schema("apps/v1")
    assert upstream.kind == Kind("apps", "v1", "deployments", "Deployment", built_in=True)
