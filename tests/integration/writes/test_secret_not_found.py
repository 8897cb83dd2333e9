"""A missing Secret or CA bundle is reported by an Event where that can be seen; no content is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, SECRETS
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import CPU, GPU, model_deployment
from support.events import notes, until_event
from support.kinds import UPSTREAM
from support.proxy import Fault, behind
from support.restarts import restarted
from support.roles import until_allowed
from support.waiting import phase, until_deployment

pytestmark = pytest.mark.integration

OVERLAY = str(ROOT / "manifests" / "secret-check")
NAMED = {**GPU, "secrets": {"huggingFaceToken": "hf-token-secret"}}
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


@pytest.fixture
def permitted(suite: Suite) -> Iterator[None]:
    suite.plane.kubectl("apply", "-k", OVERLAY)
    try:
        until_allowed(suite.plane, "provider-dynamo", "get", "secrets", allowed=True)
        until_allowed(suite.plane, "provider-direct", "get", "configmaps", allowed=True)
        yield
    finally:
        suite.plane.kubectl("delete", "-k", OVERLAY)
        for provider in UPSTREAM:
            until_allowed(suite.plane, f"provider-{provider}", "get", "secrets", allowed=False)


async def test_missing_secret_is_reported_once_by_its_metadata_alone(
    suite: Suite, api: Client, namespace: str, permitted: None, tmp_path: Path
) -> None:
    asked: list[tuple[str, str]] = []

    def secrets(request: web.Request) -> Fault | None:
        if f"/namespaces/{namespace}/secrets/" in request.path:
            asked.append((request.method, request.headers["Accept"]))
        return None

    there = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "there", "namespace": namespace}}
    await api.create(SECRETS, {**there, "stringData": {"HF_TOKEN": "x"}}, manager="test")
    log = AuditLog(suite)
    async with behind(suite, "dynamo", tmp_path) as proxy:
        proxy.rule = secrets
        for name, secret in (("m", "hf-token-secret"), ("with", "there")):
            spec = {**GPU, "secrets": {"huggingFaceToken": secret}}
            body = model_deployment(name, namespace, spec, provider="dynamo")
            await api.create(MODEL_DEPLOYMENTS, body, manager="test")
        note = await until_event(api, namespace, "SecretNotFound")
        for name in ("m", "with"):
            await until_deployment(api, name, namespace, lambda obj: phase(obj) == "Running")

    assert note == f"Secret 'hf-token-secret' not found in namespace '{namespace}'"
    assert await notes(api, namespace, "SecretNotFound") == [note]
    assert asked == [("GET", METADATA)] * 2
    audited = [
        (entry["verb"], entry["objectRef"].get("name"))
        for component, entry in log.all(namespace)
        if entry["objectRef"]["resource"] == "secrets" and component != "core"
    ]
    assert sorted(audited) == [("get", "hf-token-secret"), ("get", "there")]


async def test_missing_ca_bundle_is_reported_by_its_name(
    suite: Suite, api: Client, namespace: str, permitted: None
) -> None:
    with restarted(suite.components["direct"], {"KUBEFOUNDRY_POD_CA_BUNDLE": "company-ca/ca.crt"}):
        body = model_deployment("m", namespace, CPU, provider="direct")
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")
        note = await until_event(api, namespace, "ConfigMapNotFound")

    assert note == f"ConfigMap 'company-ca' not found in namespace '{namespace}'"


async def test_without_the_permission_no_secret_is_asked_for(
    suite: Suite, api: Client, namespace: str
) -> None:
    log = AuditLog(suite)

    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, NAMED, provider="kuberay"), manager="test"
    )

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    assert log.requests("provider-kuberay", namespace, "secrets") == []
    assert await notes(api, namespace, "SecretNotFound") == []
