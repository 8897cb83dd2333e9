"""Values that admission takes back, removes or changes: refused or named, and never reported as served."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog, until_logged
from support.command_line import CommandLine
from support.deployments import GPU, model_deployment
from support.events import notes, until_event
from support.kinds import UPSTREAM
from support.mutating_policies import Mutation, mutating, patch
from support.waiting import SECONDS, message, phase, reason, serves, until_deployment

pytestmark = pytest.mark.integration

WORKER = "/spec/services/VllmWorker"
WORKER_REPLICAS = "spec.services.VllmWorker.replicas"
REPLICAS_UNDONE = Mutation(
    "nvidia.com",
    "dynamographdeployments",
    patch(
        "replace", f"{WORKER}/replicas", f"oldObject.{WORKER_REPLICAS}", when='request.operation == "UPDATE"'
    ),
)
LESS_MEMORY = Mutation(
    "nvidia.com",
    "dynamographdeployments",
    patch("replace", "/spec/services/Frontend/resources/limits/memory", '"1Gi"'),
)
EMPTIED = Mutation("nvidia.com", "dynamographdeployments", patch("replace", "/spec", "{}"))


async def _until_patched(log: AuditLog, namespace: str) -> None:
    """Wait until provider Dynamo has sent its object again."""
    await until_logged(
        lambda: log.requests("provider-dynamo", namespace, "dynamographdeployments"),
        lambda sent: any(entry["verb"] == "patch" for entry in sent),
    )


async def _serving(api: Client, namespace: str) -> None:
    """Create a model on provider Dynamo, and wait until it serves."""
    body = model_deployment("m", namespace, GPU, provider="dynamo")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, serves)


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_part_that_admission_takes_back_is_not_ready(suite: Suite, api: Client, namespace: str) -> None:
    await _serving(api, namespace)
    component = suite.components["dynamo"]

    async with mutating(api, namespace, [REPLICAS_UNDONE]):
        edit: list[dict[str, Any]] = [
            {"op": "add", "path": "/spec/scaling/replicas", "value": 2},
            {"op": "add", "path": "/spec/engine/contextLength", "value": 4096},
        ]
        await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, edit, manager="test")

        for restarted in (False, True):
            if restarted:
                component.stop()
                log = AuditLog(suite)
                component.start()
                await _until_patched(log, namespace)
            refused = await until_deployment(
                api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
            )
            words = (
                f"DynamoGraphDeployment 'm' was accepted, but the change of {WORKER_REPLICAS} was not stored: an "
                "admission webhook or policy reverts it, and the rest of the edit is in force; change the "
                "ModelDeployment or contact the owner of that policy"
            )
            assert message(refused, "ResourceCreated") == words
            assert message(refused, "Ready") == f"{words}; the model keeps serving"
            assert (phase(refused), refused["status"]["observedGeneration"]) == ("Running", 1)
            live = await api.get(UPSTREAM["dynamo"], "m", namespace)
            assert "--max-model-len" in str(live["spec"])
        kubefoundry = CommandLine(suite.plane.kubeconfig, namespace)
        listed, waited = await kubefoundry("status"), await kubefoundry("wait", "m", "--timeout", "180s")
        assert "NotApplied" in listed.out
        assert (waited.code, WORKER_REPLICAS in waited.out + waited.err) == (1, True)
    # Without an edit, because the refused write is tried again. Its delay has doubled with each refusal.
    whole = await until_deployment(api, "m", namespace, serves, seconds=3 * SECONDS)
    live = await api.get(UPSTREAM["dynamo"], "m", namespace)
    assert live["spec"]["services"]["VllmWorker"]["replicas"] == 2
    assert message(whole, "ResourceCreated").startswith("Created DynamoGraphDeployment 'm'")
    assert await notes(api, namespace, "DriftDetected") == []


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_undone_edit_is_no_drift_when_partly_in_force(
    suite: Suite, api: Client, namespace: str
) -> None:
    await _serving(api, namespace)

    async with mutating(api, namespace, [REPLICAS_UNDONE]):
        edit: list[dict[str, Any]] = [
            {"op": "add", "path": "/spec/scaling/replicas", "value": 2},
            {"op": "add", "path": "/spec/image", "value": "example.com/other:2.0.0"},
        ]
        await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, edit, manager="test")
        await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
        )
        undo: list[dict[str, Any]] = [
            {"op": "remove", "path": "/spec/scaling"},
            {"op": "remove", "path": "/spec/image"},
        ]
        await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, undo, manager="test")

        await until_deployment(api, "m", namespace, serves)
    live = await api.get(UPSTREAM["dynamo"], "m", namespace)
    assert "example.com/other" not in str(live["spec"])
    assert await notes(api, namespace, "DriftDetected") == []


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_ready_names_a_value_that_admission_changed(suite: Suite, api: Client, namespace: str) -> None:
    async with mutating(api, namespace, [LESS_MEMORY]):
        body = model_deployment("m", namespace, GPU, provider="dynamo")
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")

        serving = await until_deployment(api, "m", namespace, serves)

        changed = (
            "the cluster's admission changed spec.services.Frontend.resources.limits.memory of "
            "DynamoGraphDeployment 'm', and this is not reverted"
        )
        assert message(serving, "Ready").endswith(f"; {changed}")
        assert message(serving, "ResourceCreated").endswith(f"; {changed}")


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_spec_that_admission_empties_is_retried(suite: Suite, api: Client, namespace: str) -> None:
    log = AuditLog(suite)
    async with mutating(api, namespace, [EMPTIED]):
        body = model_deployment("m", namespace, GPU, provider="dynamo")
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")

        refused = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
        )
        assert "DynamoGraphDeployment 'm' was accepted, but without spec." in (
            message(refused, "ResourceCreated")
        )
        # The Event follows the status. A process that is stopped between the two sends none.
        await until_event(api, namespace, "ApplyRejected")
        component = suite.components["dynamo"]
        component.stop()
        again = AuditLog(suite)
        component.start()
        await _until_patched(again, namespace)
        refused = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
        )
        assert message(refused, "Ready").startswith("DynamoGraphDeployment 'm' was accepted, but without")

    # Without an edit.
    await until_deployment(api, "m", namespace, serves)
    assert len(log.writes("provider-dynamo", namespace, "dynamographdeployments")) < 10
    assert len(await notes(api, namespace, "ApplyRejected")) == 1
    assert await notes(api, namespace, "DriftDetected") == []
