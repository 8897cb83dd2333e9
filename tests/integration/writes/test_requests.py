"""Requests to the API server on the main path: permitted, few, and none at rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kubefoundry_local.suite import COMPONENTS, NAMESPACE, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import CPU, DISAGGREGATED, GPU
from support.edits import running
from support.kinds import UPSTREAM
from support.roles import until_allowed
from support.suites import install_crd
from support.upstream import standin
from support.waiting import until

pytestmark = pytest.mark.integration

ACCOUNTS = [name if name in ("core", "selector") else f"provider-{name}" for name in COMPONENTS]

MOST = 8
"""Requests from creation to Running for which there is need: core's status, the finalizer, the upstream object and
its helper, and a status for each step that the upstream operator shows; Events and Leases apart."""

EVERY = pytest.mark.parametrize(
    ("spec", "provider"),
    [
        pytest.param(CPU, "kaito", id="kaito llamacpp"),
        pytest.param(GPU, "kaito", id="kaito preset"),
        pytest.param(GPU, "dynamo", id="dynamo aggregated"),
        pytest.param(DISAGGREGATED, "dynamo", id="dynamo disaggregated"),
        pytest.param(GPU, "kuberay", id="kuberay aggregated"),
        pytest.param(DISAGGREGATED, "kuberay", id="kuberay disaggregated"),
    ],
)


async def test_requests_are_permitted_and_read_no_secret(fresh: Suite, api: Client) -> None:
    log = AuditLog(fresh)
    for provider in UPSTREAM:
        install_crd(fresh, standin(provider).document)
    fresh.simulate(*UPSTREAM)
    for name, component in zip(COMPONENTS, ACCOUNTS, strict=True):
        fresh.install(name)
        lease = f"leases.coordination.k8s.io/kubefoundry-{component}"
        until_allowed(fresh.plane, component, "update", lease, allowed=True, namespace=NAMESPACE)
        until_allowed(fresh.plane, component, "list", MODEL_DEPLOYMENTS.crd, allowed=True)
    fresh.start()

    for name in (*UPSTREAM, "selected"):
        await running(api, "default", GPU, name if name in UPSTREAM else None, name)
        made = await api.get(MODEL_DEPLOYMENTS, name, "default")
        await api.delete(MODEL_DEPLOYMENTS, name, "default", uid=made["metadata"]["uid"])
        await until(api, MODEL_DEPLOYMENTS, name, "default", lambda obj: obj is None)
    fresh.stop()

    asked = log.all()
    assert {component for component, _ in asked} == set(ACCOUNTS)
    refused = [line(entry) for _, entry in asked if entry["responseStatus"]["code"] in (401, 403)]
    assert refused == []
    # Who may use a provider is a question of --check-provider-use, which is off.
    assert [line(entry) for _, entry in asked if "/subjectaccessreviews" in entry["requestURI"]] == []
    secrets = {
        (component, entry["objectRef"].get("namespace"), entry["objectRef"].get("name"))
        for component, entry in asked
        if entry.get("objectRef", {}).get("resource") == "secrets" and entry["verb"] != "create"
    }
    assert secrets == {("core", "kubefoundry-system", "kubefoundry-core-tls")}


@EVERY
async def test_few_requests_from_creation_to_running(
    suite: Suite,
    api: Client,
    namespace: str,
    record_property: Callable[[str, object], None],
    spec: dict[str, Any],
    provider: str,
) -> None:
    log = AuditLog(suite)

    await running(api, namespace, spec, provider)

    asked = [(component, entry) for component, entry in log.all(namespace) if due(entry)]
    counts = Counter(component for component, _ in asked)
    record_property("requests", dict(counts))
    assert sum(counts.values()) <= MOST, [f"{component} {line(entry)}" for component, entry in asked]
    assert counts.keys() == {"core", f"provider-{provider}"}


@pytest.mark.parametrize("provider", UPSTREAM)
@pytest.mark.parametrize(
    "path", ["/metadata/labels", "/metadata/annotations"], ids=["a label", "an annotation"]
)
async def test_irrelevant_change_causes_no_request(
    suite: Suite, api: Client, namespace: str, provider: str, path: str
) -> None:
    await running(api, namespace, GPU, provider)
    # Turns are taken in order: when a later one is done, nothing is left of the first.
    await running(api, namespace, GPU, provider, "settled")
    log = AuditLog(suite)

    await api.json_patch(
        MODEL_DEPLOYMENTS,
        "m",
        namespace,
        [{"op": "add", "path": path, "value": {"example.com/team": "search"}}],
        manager="test",
    )

    await running(api, namespace, GPU, provider, "later")
    about_it = [line(entry) for _, entry in log.all(namespace) if entry["objectRef"].get("name") == "m"]
    assert about_it == []


def due(entry: dict[str, Any]) -> bool:
    """A conflict is nobody's wish: two wrote at the same moment."""
    conflict = entry["responseStatus"]["code"] == 409
    apart = entry["objectRef"]["resource"] in ("events", "leases") or entry["verb"] == "watch"
    return not (conflict or apart)


def line(entry: dict[str, Any]) -> str:
    return f"{entry['verb']} {entry['requestURI']} {entry['responseStatus']['code']}"
