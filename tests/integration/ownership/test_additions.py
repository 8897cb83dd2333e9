"""Fields that others add to an upstream object stay and are named once, and an added program is not Ready."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, HELPER_KINDS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import CPU, GPU, model_deployment
from support.edits import running
from support.events import notes, until_event
from support.kinds import UPSTREAM
from support.metrics import sample, until_scraped
from support.mutating_policies import Mutation, mutating, patch
from support.restarts import stopped
from support.waiting import message, phase, serves, until_deployment

pytestmark = pytest.mark.integration

SERVICES = HELPER_KINDS["Service"]
CONTAINER = "/spec/template/spec/containers/0"
COMMAND = "spec.template.spec.containers[engine].command"
COUNTS = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}
WRAPPED = Mutation(
    "apps",
    "deployments",
    patch(
        "add",
        f"{CONTAINER}/command",
        '["wrapper"]',
        when="!has(object.spec.template.spec.containers[0].command)",
    ),
)


async def serving(api: Client, namespace: str, **spec: Any) -> Object:
    """A model of provider direct that serves its newest generation."""
    body = model_deployment("m", namespace, {**CPU, **spec}, provider="direct")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) is not None and _has(obj))
    await available(api, namespace)
    return await until_deployment(api, "m", namespace, serves)


def _has(obj: Object) -> bool:
    return "resourceName" in ((obj.get("status") or {}).get("provider") or {})


async def available(api: Client, namespace: str) -> None:
    """Kubernetes' Deployment controller does not run here."""
    live = await api.get(DEPLOYMENTS, "m", namespace)
    status = {"observedGeneration": live["metadata"]["generation"], **COUNTS}
    operations = [{"op": "add", "path": "/status", "value": status}]
    await api.json_patch(DEPLOYMENTS, "m", namespace, operations, manager="controller", subresource="/status")


async def patched(api: Client, namespace: str, op: str, path: str, value: Any = None) -> None:
    operation = {"op": op, "path": path, **({} if value is None else {"value": value})}
    await api.json_patch(DEPLOYMENTS, "m", namespace, [operation], manager="kubectl-patch")
    await available(api, namespace)


async def looked_at(suite: Suite, api: Client, namespace: str) -> None:
    """Provider direct has seen everything before, once a later model exists and nothing is pending."""
    body = model_deployment("later", namespace, CPU, provider="direct")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "later", namespace, _has)
    await until_scraped(
        suite.components["direct"],
        lambda series: sample(series, "kubefoundry_reconciliations_pending", provider="direct") == 0,
    )


# An image that contains its model has no command of ours.
IMAGE: dict[str, Any] = {
    "image": "example.com/model:1",
    "model": {"source": "custom", "servedName": "m"},
    "engine": {"type": "llamacpp"},
}


async def test_command_of_others_is_named_and_is_not_ready(suite: Suite, api: Client, namespace: str) -> None:
    await serving(api, namespace, **IMAGE)

    await patched(api, namespace, "add", f"{CONTAINER}/command", ["other"])

    held = await until_deployment(api, "m", namespace, lambda obj: COMMAND in message(obj, "Ready"))
    assert phase(held) == "Running"
    assert held["status"]["observedGeneration"] == 0
    assert held["status"]["message"].startswith(
        f"The spec that serves may not be the newest: others added {COMMAND} to Deployment 'm', so other programs "
        "run; remove it there"
    )
    assert f"{COMMAND} (kubectl-patch); they are left as they are" in held["status"]["message"]

    await patched(api, namespace, "remove", f"{CONTAINER}/command")

    freed = await until_deployment(api, "m", namespace, serves)
    assert COMMAND not in freed["status"]["message"]


async def test_redirected_service_is_named_and_is_not_ready(
    suite: Suite, api: Client, namespace: str
) -> None:
    service = (await serving(api, namespace, **IMAGE))["status"]["endpoint"]["service"]
    redirect = [
        {"op": "replace", "path": "/spec/type", "value": "ExternalName"},
        {"op": "add", "path": "/spec/externalName", "value": "example.com"},
    ]

    await api.json_patch(SERVICES, service, namespace, redirect, manager="kubectl-patch")

    held = await until_deployment(api, "m", namespace, lambda obj: "ExternalName" in message(obj, "Ready"))
    assert (phase(held), held["status"]["observedGeneration"]) == ("Running", 0)
    assert held["status"]["message"].startswith(
        f"The spec that serves may not be the newest: others gave Service '{service}' the type ExternalName, so its "
        "clients reach other programs; set its type to ClusterIP"
    )

    back = [{"op": "replace", "path": "/spec/type", "value": "ClusterIP"}]
    await api.json_patch(SERVICES, service, namespace, back, manager="kubectl-patch")

    freed = await until_deployment(api, "m", namespace, serves)
    assert "ExternalName" not in freed["status"]["message"]


async def test_additions_are_named_once_and_are_ready(suite: Suite, api: Client, namespace: str) -> None:
    await serving(api, namespace)
    log = AuditLog(suite)

    init = [{"name": "warm", "image": "example.com/warm:1"}]
    await patched(api, namespace, "add", "/spec/template/spec/initContainers", init)

    named = await until_deployment(api, "m", namespace, lambda obj: "initContainers" in message(obj, "Ready"))
    assert serves(named)
    assert named["status"]["message"].endswith(
        "Deployment 'm' has fields that others added: spec.template.spec.initContainers (kubectl-patch); they are "
        "left as they are"
    )
    note = await until_event(api, namespace, "DriftDetected")
    assert "spec.template.spec.initContainers (kubectl-patch)" in note

    # Another process finds the status as it is: it names nothing again.
    with stopped(suite.components["direct"]):
        operations = [{"op": "add", "path": "/metadata/annotations/example.com~1by", "value": "x"}]
        await api.json_patch(DEPLOYMENTS, "m", namespace, operations, manager="somebody")
    version = named["metadata"]["resourceVersion"]
    await looked_at(suite, api, namespace)
    later = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert later["metadata"]["resourceVersion"] == version
    assert len(await notes(api, namespace, "DriftDetected")) == 1
    # The creation of the later one.
    assert len(log.writes("provider-direct", namespace, "deployments")) == 1


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_fields_that_admission_adds_to_our_write_are_its_own(
    suite: Suite, api: Client, namespace: str
) -> None:
    async with mutating(api, namespace, [WRAPPED]):
        current = await serving(api, namespace, **IMAGE)

    live = await api.get(DEPLOYMENTS, "m", namespace)
    assert live["spec"]["template"]["spec"]["containers"][0]["command"] == ["wrapper"]
    assert "others added" not in current["status"]["message"]
    assert await notes(api, namespace, "DriftDetected") == []


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_defaults_of_an_upstream_are_not_named(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    made = await running(api, namespace, GPU, provider)

    assert "others added" not in made["status"]["message"]
