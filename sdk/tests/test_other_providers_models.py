"""A ModelDeployment of another provider: it costs no reconcile, unless something of this provider may be left."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import REGISTRY

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind
from kubefoundry_sdk._cluster.requests import path
from kubefoundry_sdk._provider.watch.upstream import Upstream
from kubefoundry_sdk.testing import Harness, simulated
from kubefoundry_sdk.testing._harness import NAMESPACE
from support.contexts import UNUSED, context
from support.plans import provider
from support.things import PROVIDER, SPEC, crd

OTHER = "other"
URL = path(MODEL_DEPLOYMENTS, NAMESPACE, "theirs")
APPLY = "application/apply-patch+yaml"


def reconciles() -> float:
    labels = {"name": PROVIDER.name}
    return REGISTRY.get_sample_value("workqueue_work_duration_seconds_count", labels) or 0.0


def body(**content: Any) -> dict[str, Any]:
    meta = {"name": "theirs", "namespace": NAMESPACE}
    return {"apiVersion": names.API_VERSION, "kind": names.MODEL_DEPLOYMENT, "metadata": meta, **content}


async def create_theirs(harness: Harness) -> None:
    """Create a ModelDeployment, and choose another provider for it as core does."""
    harness._send(
        "POST", path(MODEL_DEPLOYMENTS, NAMESPACE), body(spec={**SPEC, "provider": {"name": OTHER}})
    )
    status = {"provider": {"name": OTHER}}
    harness._send("PATCH", f"{URL}/status", body(status=status), APPLY, names.CORE_MANAGER, force="true")
    await harness.advance(5)


@simulated
async def test_model_of_another_provider_is_not_reconciled() -> None:
    async with Harness(PROVIDER, crd()) as harness:
        await harness.create(SPEC)
        before = reconciles()
        await create_theirs(harness)

        assert reconciles() == before


@simulated
async def test_object_of_others_with_its_name_is_looked_at_and_stays() -> None:
    meta = {"name": "theirs", "namespace": NAMESPACE}
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": meta}
    thing["spec"] = {"image": "example.com/theirs:1"}
    kind = Kind("example.com", "v1", "things", "Thing")
    async with Harness(PROVIDER, crd()) as harness:
        harness._send("POST", path(kind, NAMESPACE), thing)
        await harness.advance(5)
        created, before = harness.get(kind, "theirs"), reconciles()
        await create_theirs(harness)

        assert reconciles() > before
        assert harness.get(kind, "theirs") == created


@pytest.mark.parametrize("is_ours", [True, False], ids=["ours", "not ours"])
@pytest.mark.parametrize(("name", "expected"), [("theirs", True), ("another", False)])
def test_existing_object_of_that_name_may_have_to_be_cleaned_up(
    is_ours: bool, name: str, expected: bool
) -> None:
    upstream = Upstream(UNUSED, provider(), "example-provider", lambda: None)
    owners = [{"apiVersion": names.API_VERSION, "kind": names.MODEL_DEPLOYMENT, "name": name, "uid": "u"}]
    meta: dict[str, Any] = {"name": name, "namespace": NAMESPACE, "uid": "o", "resourceVersion": "1"}
    engine = {"apiVersion": "example.com/v1", "kind": "Engine", "metadata": meta}
    if is_ours:
        meta["ownerReferences"] = owners
    upstream.replace([], "1")
    upstream.objects.replace([engine], "1")
    held = context(upstream=upstream)
    for _, store in held.helpers:
        store.replace([], "1")

    assert held.may_clean_up((NAMESPACE, "theirs"), "u") is expected


def test_clean_up_may_be_needed_until_all_objects_are_listed() -> None:
    upstream = Upstream(UNUSED, provider(), "example-provider", lambda: None)
    held = context(upstream=upstream)

    assert held.may_clean_up((NAMESPACE, "theirs"), "u")


@simulated
async def test_own_model_is_reconciled() -> None:
    async with Harness(PROVIDER, crd()) as harness:
        before = reconciles()
        await harness.create(SPEC)

        assert reconciles() > before


@simulated
@pytest.mark.parametrize("trace", ["finalizer", "status"])
async def test_trace_on_a_model_of_another_provider_is_removed(trace: str) -> None:
    manager = names.provider_manager(PROVIDER.name)
    finalizer = names.provider_finalizer(PROVIDER.name)
    async with Harness(PROVIDER, crd()) as harness:
        await create_theirs(harness)
        if trace == "finalizer":
            left = body()
            left["metadata"]["finalizers"] = [finalizer]
            harness._send("PATCH", URL, left, APPLY, manager, force="true")
        else:
            left = body(status={"message": "left behind"})
            harness._send("PATCH", f"{URL}/status", left, APPLY, manager, force="true")
        await harness.advance(5)

        theirs = harness.get(MODEL_DEPLOYMENTS, "theirs")
    assert finalizer not in theirs["metadata"].get("finalizers", [])
    assert "message" not in theirs["status"]
