"""Admission changes a status: an Event and the message say so, and it is stored soon after that ends."""

from __future__ import annotations

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine
from support.deployments import CPU, GPU, model_deployment
from support.events import until_event
from support.mutating_policies import Mutation, mutating, patch
from support.suites import install_crd
from support.upstream import standin
from support.waiting import message, phase, reason, serves, until, until_deployment

pytestmark = [
    pytest.mark.integration,
    pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy"),
]

STATUSES = ("kubefoundry.ai", "modeldeployments/status")
HEALED = 150
"""Seconds until a status is stored again: at most a minute after admission, and the time of a busy machine."""


async def test_model_starts_once_core_conditions_are_stored(
    suite: Suite, api: Client, namespace: str
) -> None:
    dropped = patch("remove", "/status/conditions", when="has(object.status.conditions)")
    async with mutating(api, namespace, [Mutation(*STATUSES, dropped)]):
        body = model_deployment("m", namespace, CPU, provider="direct")
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")

        note = await until_event(api, namespace, "WriteRejected", lambda note: "kubefoundry-core" in note)
        assert "condition Validated" in note and "was not stored as sent" in note
        shown = await until_deployment(
            api, "m", namespace, lambda obj: "kubefoundry-core writes" in obj["status"].get("message", "")
        )
        assert "conditions" not in shown["status"]

    healed = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated", seconds=HEALED
    )
    assert "admission" not in message(healed, "Ready")


@pytest.mark.parametrize(
    ("component", "change"),
    [
        pytest.param(
            "provider-dynamo",
            patch("add", "/status/phase", '"Failed"', when="has(object.status.endpoint)"),
            id="provider",
        ),
        pytest.param(
            "selector",
            patch("remove", "/status/provider", when="has(object.status.selection)"),
            id="selector",
        ),
    ],
)
async def test_other_writers_status_heals(
    suite: Suite, api: Client, namespace: str, component: str, change: str
) -> None:
    chosen = "dynamo" if component == "provider-dynamo" else None
    async with mutating(api, namespace, [Mutation(*STATUSES, change)]):
        body = model_deployment("m", namespace, GPU, provider=chosen)
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")

        note = await until_event(
            api, namespace, "WriteRejected", lambda note: f"kubefoundry-{component}" in note
        )
        assert "was not stored as sent" in note
        doctor = await CommandLine(suite.plane.kubeconfig, namespace)("doctor")
        assert f"✗ model {namespace}/m: A write of kubefoundry-{component} was changed" in doctor.out, doctor

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running", seconds=HEALED)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(patch("add", "/status/phase", '"Failed"', when="PAUSED"), id="phase"),
        pytest.param(patch("remove", "/status/conditions", when="PAUSED"), id="conditions"),
        pytest.param(patch("remove", "/status", when="PAUSED"), id="status"),
    ],
)
async def test_status_of_a_paused_model_heals(suite: Suite, api: Client, namespace: str, change: str) -> None:
    body = model_deployment("m", namespace, GPU, provider="dynamo")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, serves)
    written = "has(object.status.message) && object.status.message == 'reconciliation paused'"
    pause = {"op": "add", "path": "/metadata/annotations", "value": {names.PAUSED_ANNOTATION: "true"}}

    async with mutating(api, namespace, [Mutation(*STATUSES, change.replace("PAUSED", written))]):
        await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, [pause], manager="test")
        note = await until_event(
            api, namespace, "WriteRejected", lambda note: "kubefoundry-provider-dynamo" in note
        )
        assert "was not stored as sent" in note

    healed = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: serves(obj) and reason(obj, "ResourceCreated") == "ResourceCreated",
        seconds=HEALED,
    )
    assert healed["status"]["message"] == names.PAUSED_MESSAGE


async def test_registration_names_its_changed_spec(fresh: Suite, api: Client) -> None:
    install_crd(fresh, standin("kaito").document)
    change = patch("replace", "/spec/capabilities/gpuSupport", "false")
    async with mutating(api, "default", [Mutation(names.GROUP, PROVIDER_CONFIGS.plural, change)]):
        fresh.start("kaito")
        changed = await until(
            api, PROVIDER_CONFIGS, "kaito", None, lambda obj: obj and reason(obj, "RegistrationApplied")
        )
        assert changed is not None
        assert "spec.capabilities was not stored as sent" in message(changed, "RegistrationApplied")
        assert changed["spec"]["capabilities"]["gpuSupport"] is False
        listed = fresh.plane.kubectl("get", "ipc", "kaito").stdout.splitlines()
        assert [line[listed[0].index("APPLIED") :].split()[0] for line in listed] == ["APPLIED", "False"]

    healed = await until(
        api,
        PROVIDER_CONFIGS,
        "kaito",
        None,
        lambda obj: (
            obj and obj["spec"]["capabilities"]["gpuSupport"] and not reason(obj, "RegistrationApplied")
        ),
        seconds=HEALED,
    )
    assert healed is not None
