"""Webhooks and policies change or refuse writes: reported or left alone, and the model is still observed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog, until_logged
from support.deployments import CPU, GPU, model_deployment
from support.events import notes, until_event
from support.kinds import UPSTREAM
from support.mutating_policies import Mutation, mutating, patch
from support.refusing_webhook import refusing
from support.restarts import stopped
from support.waiting import message, phase, reason, serves, until, until_deployment
from support.wishes import change_spec

pytestmark = pytest.mark.integration

IMAGE = "object.spec.template.spec.containers[0].image"
MIRROR = Mutation(
    "apps",
    "deployments",
    patch(
        "replace",
        "/spec/template/spec/containers/0/image",
        f'"mirror.internal/" + {IMAGE}',
        when=f'!{IMAGE}.startsWith("mirror.internal/")',
    ),
)
STRIPPED = Mutation(
    "kubefoundry.ai",
    "modeldeployments",
    patch("remove", "/metadata/finalizers", when="has(object.metadata.finalizers)"),
)
PROVIDER_LABEL = f"{names.PREFIX}provider"
RELABELLED = Mutation(
    "apps",
    "deployments",
    patch(
        "replace",
        f"/metadata/labels/{PROVIDER_LABEL.replace('/', '~1')}",
        '"other"',
        when=f'"{PROVIDER_LABEL}" in object.metadata.?labels.orValue({{}})',
    ),
)


UNDONE = Mutation(
    "nvidia.com",
    "dynamographdeployments",
    patch("replace", "/spec", "oldObject.spec", when='request.operation == "UPDATE"'),
)


OWNERLESS = Mutation(
    "nvidia.com",
    "dynamographdeployments",
    patch("remove", "/metadata/ownerReferences", when="has(object.metadata.ownerReferences)"),
)


async def created(api: Client, namespace: str) -> None:
    body = model_deployment("m", namespace, CPU, provider="direct")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")


async def until_created(api: Client, namespace: str) -> Object:
    return await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated"
    )


async def _serving(api: Client, namespace: str) -> None:
    """Create a model on provider Dynamo, and wait until it serves."""
    body = model_deployment("m", namespace, GPU, provider="dynamo")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, serves)


async def edited(api: Client, namespace: str, path: str, value: Any) -> None:
    """An edit of the Deployment by somebody else."""
    operations = [{"op": "add", "path": path, "value": value}]
    await api.json_patch(DEPLOYMENTS, "m", namespace, operations, manager="somebody")


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_mirrored_image_is_named_and_is_no_drift(suite: Suite, api: Client, namespace: str) -> None:
    log = AuditLog(suite)
    async with mutating(api, namespace, [MIRROR]):
        await created(api, namespace)
        shown = await until_created(api, namespace)
        assert "the cluster's admission changed spec.template.spec.containers[" in message(
            shown, "ResourceCreated"
        )

        # Another process takes over, and does not know what was stored.
        with stopped(suite.components["direct"]):
            await edited(api, namespace, "/metadata/annotations/by", "somebody")
        await edited(api, namespace, "/spec/template/spec/containers/0/args", ["--other"])

        await until(
            api,
            DEPLOYMENTS,
            "m",
            namespace,
            lambda obj: obj and obj["spec"]["template"]["spec"]["containers"][0]["args"] != ["--other"],
        )
        note = await until_event(api, namespace, "DriftDetected")
        assert ".args of Deployment 'm' by somebody" in note
        assert ".image" not in note
        live = await api.get(DEPLOYMENTS, "m", namespace)
        assert live["spec"]["template"]["spec"]["containers"][0]["image"].startswith("mirror.internal/")
        shown = await until_created(api, namespace)
        assert ".image of Deployment 'm', and this is not reverted" in message(shown, "ResourceCreated")
    assert len(await notes(api, namespace, "DriftDetected")) == 1
    # One creates it, and one reverts the edit.
    assert len(log.writes("provider-direct", namespace, "deployments")) == 2


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_observed_while_finalizer_is_not_stored(suite: Suite, api: Client, namespace: str) -> None:
    await created(api, namespace)
    await until_created(api, namespace)
    async with mutating(api, namespace, [STRIPPED]):
        await api.json_patch(
            MODEL_DEPLOYMENTS,
            "m",
            namespace,
            [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}],
            manager="somebody",
        )

        refused = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
        )
        assert (
            "Finalizer kubefoundry.ai/direct-provider of ModelDeployment 'm' was accepted but not stored"
            in (message(refused, "ResourceCreated"))
        )
        await until_event(api, namespace, "ApplyRejected")
        await _count(api, namespace, 1)

        await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")


async def _count(api: Client, namespace: str, replicas: int) -> None:
    """Write the status of the Deployment as its controller does."""
    live = await api.get(DEPLOYMENTS, "m", namespace)
    kinds = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    counts = {"observedGeneration": live["metadata"]["generation"], **dict.fromkeys(kinds, replicas)}
    operations = [{"op": "add", "path": "/status", "value": counts}]
    await api.json_patch(DEPLOYMENTS, "m", namespace, operations, manager="controller", subresource="/status")


@asynccontextmanager
async def edit_without_labels(api: Client, namespace: str) -> AsyncIterator[Object]:
    """Edit a model that serves while admission changes the Deployment's label, and return the refused model."""
    await created(api, namespace)
    await until_created(api, namespace)
    await _count(api, namespace, 1)
    await until_deployment(api, "m", namespace, serves)
    async with mutating(api, namespace, [RELABELLED]):
        await change_spec(api, namespace, "/spec/image", "example.com/other:2")
        yield await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
        )


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_model_stays_observed_when_an_edit_loses_labels(
    suite: Suite, api: Client, namespace: str
) -> None:
    """The watch selects by labels, so it takes the Deployment for deleted."""
    async with edit_without_labels(api, namespace) as refused:
        assert (phase(refused), refused["status"]["observedGeneration"]) == ("Running", 1)
        assert refused["status"]["endpoint"]["service"]
        await _count(api, namespace, 0)

        await until_deployment(api, "m", namespace, lambda obj: phase(obj) != "Running")


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_model_stays_observed_by_a_new_process_without_labels(
    suite: Suite, api: Client, namespace: str
) -> None:
    async with edit_without_labels(api, namespace):
        with stopped(suite.components["direct"]):
            log = AuditLog(suite)
        # The new process sends the edit again, and is refused.
        await until_logged(
            lambda: log.requests("provider-direct", namespace, "deployments"),
            lambda sent: any(entry["verb"] == "patch" for entry in sent),
        )
        kept = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
        assert (phase(kept), kept["status"]["observedGeneration"]) == ("Running", 1)
        await _count(api, namespace, 0)
        gone = await until_deployment(api, "m", namespace, lambda obj: phase(obj) != "Running")
        assert gone["status"]["replicas"]["available"] == 0
        await _count(api, namespace, 1)

        again = await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
        assert reason(again, "ResourceCreated") == "ApplyRejected"


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_deletion_is_quick_when_labels_are_rewritten(suite: Suite, api: Client, namespace: str) -> None:
    async with mutating(api, namespace, [RELABELLED]):
        await created(api, namespace)

        refused = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
        )
        assert f"label {PROVIDER_LABEL} was not stored as sent" in message(refused, "ResourceCreated")
        # Nobody would watch it.
        assert await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is None) is None
        live = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=live["metadata"]["uid"])

        # The finalizer's time-out of five minutes is longer than this wait.
        await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    assert await notes(api, namespace, "FinalizerTimeout") == []


async def test_refused_finalizer_removal_is_reported(suite: Suite, api: Client, namespace: str) -> None:
    await created(api, namespace)
    await until_created(api, namespace)
    live = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    example = model_deployment("example", namespace, CPU)

    async with refusing(
        api,
        MODEL_DEPLOYMENTS,
        namespace,
        marker='"deletionTimestamp"',
        code=422,
        words="finalizers stay",
        example=example,
    ):
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=live["metadata"]["uid"])

        note = await until_event(api, namespace, "WriteRejected")
        assert "finalizers stay" in note

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None, seconds=300)


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_edit_that_admission_takes_back_is_not_ready(suite: Suite, api: Client, namespace: str) -> None:
    await _serving(api, namespace)

    async with mutating(api, namespace, [UNDONE]):
        await change_spec(api, namespace, "/spec/engine/contextLength", 4096)

        refused = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
        )
        assert "policy reverts it" in message(refused, "ResourceCreated")
        assert (phase(refused), refused["status"]["observedGeneration"]) == ("Running", 1)
        component = suite.components["dynamo"]
        component.stop()
        log = AuditLog(suite)
        component.start()
        # As the new process has sent the edit again, it did not take it for served.
        await until_logged(
            lambda: log.requests("provider-dynamo", namespace, "dynamographdeployments"),
            lambda sent: any(entry["verb"] == "patch" for entry in sent),
        )
        again = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
        assert again["status"]["observedGeneration"] == 1
    await change_spec(api, namespace, "/spec/engine/contextLength", 8192)

    await until_deployment(api, "m", namespace, serves)


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_owner_that_admission_removes_stays_refused(suite: Suite, api: Client, namespace: str) -> None:
    async with mutating(api, namespace, [OWNERLESS]):
        body = model_deployment("m", namespace, GPU, provider="dynamo")
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")
        # The operator's status is an event.
        await until_deployment(
            api,
            "m",
            namespace,
            lambda obj: phase(obj) == "Running" and reason(obj, "ResourceCreated") == "ApplyRejected",
        )
        component = suite.components["dynamo"]
        component.stop()
        log = AuditLog(suite)
        component.start()
        await until_logged(
            lambda: log.requests("provider-dynamo", namespace, "dynamographdeployments"),
            lambda sent: any(entry["verb"] == "patch" for entry in sent),
        )
        refused = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
        )
        assert "the owner reference was not stored as sent" in message(refused, "ResourceCreated")
    await change_spec(api, namespace, "/spec/engine/contextLength", 4096)

    owned = await until(
        api,
        UPSTREAM["dynamo"],
        "m",
        namespace,
        lambda obj: obj is not None and bool(obj["metadata"].get("ownerReferences")),
    )
    assert owned is not None
    await until_deployment(api, "m", namespace, serves)
