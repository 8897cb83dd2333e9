"""A request for another provider loses nothing: the old one serves until the new one has accepted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import GPU
from support.edits import running
from support.events import until_event
from support.kinds import GRAPHS, QUOTAS, RAY_SERVICES
from support.restarts import stopped
from support.suites import install_crd
from support.upstream import standin
from support.waiting import message, phase, reason, until, until_deployment
from support.wishes import edit_model

pytestmark = pytest.mark.integration

SGLANG = {**GPU, "engine": {"type": "sglang"}}
"""Dynamo can, KubeRay cannot."""
NAME = {"op": "add", "path": "/spec/provider", "value": {"name": "kuberay"}}
DRY_RUN = {"op": "add", "path": "/metadata/annotations", "value": {"kubefoundry.ai/dry-run": "true"}}
KEPT = "; the last good version keeps serving"
TOO_LATE = 300.0
"""Bound on a hand-over: the garbage collector learns of new kinds every 30 s only."""


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "m"},
    "spec": {
        "selector": {"matchLabels": {"app": "other"}},
        "template": {
            "metadata": {"labels": {"app": "other"}},
            "spec": {"containers": [{"name": "other", "image": "example.com/other:1.0.0"}]},
        },
    },
}


async def test_handover_to_a_taken_name_keeps_the_model_serving(
    suite: Suite, api: Client, namespace: str
) -> None:
    """Provider direct watches only its own Deployments, so it does not see that one before it asks."""
    await running(api, namespace, GPU, "dynamo")
    other = {**DEPLOYMENT, "metadata": {"name": "m", "namespace": namespace}}
    await api.create(DEPLOYMENTS, other, manager="somebody")

    async with nothing_lost(suite, api, namespace):
        await edit_model(api, namespace, {**NAME, "value": {"name": "direct"}})
        refused = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "NameConflict"
        )
        assert "Deployment 'm' exists" in message(refused, "ResourceCreated")


@asynccontextmanager
async def nothing_lost(suite: Suite, api: Client, namespace: str) -> AsyncIterator[Any]:
    """In the block Dynamo's object stays as it is, and its endpoint published; yields a wait for what the status
    has to say of it."""
    log = AuditLog(suite)
    graph = await api.get(GRAPHS, "m", namespace)

    async def until_kept(why: str) -> Object:
        reported = await until_deployment(
            api, "m", namespace, lambda obj: why in (obj["status"].get("message") or "")
        )
        assert reported["status"]["message"].endswith(KEPT)
        return reported

    yield until_kept

    kept = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert phase(kept) == "Running"
    assert kept["status"]["endpoint"] == {"service": "m-frontend", "port": 8000, "model": "model"}
    assert kept["status"]["provider"]["resourceKind"] == GRAPHS.kind
    ready = find(kept["status"]["conditions"], "Ready") or {}
    assert ready["status"] == "True"
    assert "kubefoundry.ai/dynamo-provider" in kept["metadata"]["finalizers"]
    assert (await api.get(GRAPHS, "m", namespace))["metadata"]["uid"] == graph["metadata"]["uid"]
    assert [
        write for write in log.writes("provider-dynamo", namespace, GRAPHS.plural) if "delete" in write
    ] == []


async def until_taken_over(api: Client, namespace: str) -> Object:
    taken = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (
            phase(obj) == "Running" and obj["status"]["provider"].get("resourceKind") == RAY_SERVICES.kind
        ),
        seconds=TOO_LATE,
    )
    await until(api, GRAPHS, "m", namespace, lambda obj: obj is None)
    assert reason(taken, "ResourceCreated") == "ResourceCreated"
    return taken


async def test_handover_to_an_unable_provider_is_refused(suite: Suite, api: Client, namespace: str) -> None:
    await running(api, namespace, SGLANG, "dynamo")

    async with nothing_lost(suite, api, namespace) as until_kept:
        await edit_model(api, namespace, NAME)
        reported = await until_kept(
            "Provider kuberay cannot take over: KubeRay does not support sglang engine"
        )
        assert reason(reported, "ProviderCompatible") == "Unsupported"
        assert "does not support sglang" in await until_event(api, namespace, "Unsupported")
        # What happens to the one that serves is still reported.
        await edit_model(api, namespace, {"op": "add", "path": "/spec/scaling/replicas", "value": 2})
        await until_deployment(
            api,
            "m",
            namespace,
            lambda obj: (
                (find(obj["status"]["conditions"], "ProviderCompatible") or {}).get("observedGeneration")
                == obj["metadata"]["generation"]
            ),
        )

    await edit_model(api, namespace, {**NAME, "value": {"name": "dynamo"}})
    back = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (
            reason(obj, "ProviderCompatible") == "CompatibilityVerified"
            and KEPT not in obj["status"]["message"]
            # Each provider writes for itself, in any order.
            and "kuberay-provider" not in {entry["manager"] for entry in obj["metadata"]["managedFields"]}
        ),
    )
    assert phase(back) in ("Running", "Deploying")


async def test_provider_whose_process_is_down_is_not_switched_to(
    suite: Suite, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "dynamo")

    with stopped(suite.components["kuberay"]):
        async with nothing_lost(suite, api, namespace) as until_kept:
            await edit_model(api, namespace, NAME)
            await until_kept("Waiting for provider kuberay to confirm that it can take over")

    await until_taken_over(api, namespace)


async def test_handover_dry_run_shows_objects_and_releases_none(
    suite: Suite, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "dynamo")

    async with nothing_lost(suite, api, namespace) as until_kept:
        await edit_model(api, namespace, DRY_RUN, NAME)
        await until_kept("annotation kubefoundry.ai/dry-run is set")
        asked = await until_deployment(
            api, "m", namespace, lambda obj: "kubefoundry.ai/dry-run-result" in obj["metadata"]["annotations"]
        )
        result = asked["metadata"]["annotations"]["kubefoundry.ai/dry-run-result"]
        assert '"accepted": true' in result
        assert '"kind": "RayService"' in result

    await edit_model(
        api, namespace, {"op": "remove", "path": "/metadata/annotations/kubefoundry.ai~1dry-run"}
    )
    await until_taken_over(api, namespace)


async def test_handover_is_refused_when_the_api_server_rejects(
    suite: Suite, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "dynamo")
    held = f"count/{RAY_SERVICES.crd}"
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "no-ray", "namespace": namespace},
    }
    suite.plane.kubectl("create", "quota", "no-ray", f"--hard={held}=0", "-n", namespace)
    # No quota controller runs here: it is simulated.
    status = {"hard": {held: "0"}, "used": {held: "0"}}
    await api.apply_status(QUOTAS, {**quota, "status": status}, manager="admin")

    async with nothing_lost(suite, api, namespace) as until_kept:
        await edit_model(api, namespace, NAME)
        reported = await until_kept("Provider kuberay cannot take over: RayService 'm' was refused")
        assert "exceeded quota: no-ray" in message(reported, "ResourceCreated")


async def test_handover_waits_for_the_successors_crd(fresh: Suite, api: Client, namespace: str) -> None:
    install_crd(fresh, standin("dynamo").document)
    fresh.simulate("dynamo", "kuberay")
    fresh.start("core", "dynamo", "kuberay")
    await running(api, namespace, GPU, "dynamo")

    async with nothing_lost(fresh, api, namespace) as until_kept:
        await edit_model(api, namespace, NAME)
        reported = await until_kept("Provider 'kuberay' CRD not installed in cluster")
        assert reason(reported, "ResourceCreated") == "CRDNotInstalled"

    install_crd(fresh, standin("kuberay").document)
    await until_taken_over(api, namespace)


async def test_selector_goes_back_when_its_choice_refuses(suite: Suite, api: Client, namespace: str) -> None:
    await running(api, namespace, GPU, "dynamo")
    await edit_model(api, namespace, {"op": "remove", "path": "/spec/provider"})
    await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ProviderSelected") == "AutoSelected")

    async with nothing_lost(suite, api, namespace):
        # KAITO needs an image for llama.cpp, and so does provider direct for a GPU of another make.
        edited = await edit_model(
            api,
            namespace,
            {"op": "replace", "path": "/spec/engine", "value": {"type": "llamacpp"}},
            {
                "op": "replace",
                "path": "/spec/resources/gpu",
                "value": {"count": 1, "type": "example.com/gpu"},
            },
        )
        await until_event(
            api, namespace, "ProviderSelected", lambda note: note.startswith("Selected provider 'kaito'")
        )
        await until_deployment(
            api,
            "m",
            namespace,
            lambda obj: (
                obj["status"]["provider"]["name"] == "dynamo"
                and reason(obj, "ProviderSelected") == "NoMatchingProvider"
                and reason(obj, "ProviderCompatible") == "Unsupported"
                and (find(obj["status"]["conditions"], "ProviderCompatible") or {})["observedGeneration"]
                == edited["metadata"]["generation"]
                and obj["status"]["observedGeneration"] < edited["metadata"]["generation"]
            ),
        )
