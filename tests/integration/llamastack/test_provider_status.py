"""Tests the status of external providers at each step of the pods' start."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_llamastack.names import LLSD
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.client import Client
from support.events import until_event
from support.llamastack import (
    ECHO,
    GUARD,
    condition_of,
    container,
    edit,
    llsd,
    new_pod,
    pod_status,
    reason,
    until_status,
)

pytestmark = pytest.mark.integration

BOTH: dict[str, Any] = {"safety": [GUARD], "inference": [ECHO]}
TOOL_ERROR = (
    "ERROR: Cannot install provider 'echo': its image has no metadata\n\nProvider: echo\n"
    "Image: example.com/echo:1\nInit Container: external-provider-echo\nCode: MissingSpec\n\n"
    "Reason: Missing /lls-provider/lls-provider-spec.yaml in image example.com/echo:1\n\n"
    "Resolution: Add the file to the image."
)
DONE: Object = {"exitCode": 0, "message": '{"package": "acme-echo", "version": "1.2.0", "warnings": []}'}


def failed(state: Object) -> Object:
    waits = [
        container(name, waiting={"reason": "PodInitializing"}) for name in ("extract-distribution-config",)
    ]
    return {"phase": "Pending", "initContainerStatuses": [state, *waits]}


ENDED = {"exitCode": 1, "message": TOOL_ERROR}
FAILURES = [
    (
        "ended",
        container("external-provider-echo", terminated=ENDED),
        "Missing /lls-provider/lls-provider-spec.yaml",
    ),
    (
        "crash loop",
        container("external-provider-echo", waiting={"reason": "CrashLoopBackOff"}, last=ENDED),
        "Missing /lls-provider/lls-provider-spec.yaml in image example.com/echo:1",
    ),
    (
        "pull",
        container("external-provider-echo", waiting={"reason": "ImagePullBackOff", "message": "denied"}),
        "Failed to pull provider image example.com/echo:1",
    ),
    (
        "killed",
        container("external-provider-echo", terminated={"exitCode": 137, "reason": "OOMKilled"}),
        "more memory than its limit",
    ),
    (
        "no shell",
        container(
            "external-provider-echo", terminated={"exitCode": 128, "message": "exec: /bin/sh: not found"}
        ),
        "/bin/sh and Python",
    ),
    (
        "secret",
        container(
            "external-provider-echo", waiting={"reason": "CreateContainerConfigError", "message": "no s"}
        ),
        "cannot be created",
    ),
]


@pytest.mark.accept("FR-001", "FR-028", "FR-029", "FR-030", "SC-002", "SC-009", "US3-1", "US3-4")
@pytest.mark.parametrize(
    ("state", "text"), [case[1:] for case in FAILURES], ids=[case[0] for case in FAILURES]
)
async def test_failed_install_is_reported_with_facts(
    api: Client, stack: Suite, namespace: str, state: Object, text: str
) -> None:
    await api.create(LLSD, llsd("fails", namespace, externalProviders=BOTH), manager="user")
    pod = await new_pod(api, "fails", namespace, "example.com/echo:1")

    await pod_status(api, pod, failed(state))

    status = await until_status(
        api, "fails", namespace, lambda status: reason(status, "ExternalProvidersReady") == "ProviderFailed"
    )
    row = status["externalProviderStatus"][0]
    assert (row["providerId"], row["phase"]) == ("echo", "Failed")
    for fact in (text, "echo", "example.com/echo:1", "external-provider-echo", "Resolution:"):
        assert fact in row["message"]
    assert status["phase"] == "Failed"
    await until_event(api, namespace, "ProviderFailed", lambda note: text in note)


@pytest.mark.accept("FR-028")
async def test_provider_rows_follow_newest_pods(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(LLSD, llsd("rows", namespace, externalProviders={"inference": [ECHO]}), manager="user")
    old = await new_pod(api, "rows", namespace, "example.com/echo:1")
    phases = []

    def at(phase: str) -> Any:
        return lambda status: (status.get("externalProviderStatus") or [{}])[0].get("phase") == phase

    for phase, state in (
        ("Pending", container("external-provider-echo", waiting={"reason": "PodInitializing"})),
        ("Installing", container("external-provider-echo", running={})),
        ("Ready", container("external-provider-echo", terminated=DONE)),
    ):
        await pod_status(api, old, failed(state))
        phases.append((await until_status(api, "rows", namespace, at(phase)))["externalProviderStatus"][0])
    await edit(
        api,
        "rows",
        namespace,
        lambda cr: cr["spec"]["server"]["externalProviders"]["inference"][0].update(
            image="example.com/echo:2"
        ),
    )
    new = await new_pod(api, "rows", namespace, "example.com/echo:2")
    await until_status(api, "rows", namespace, at("Pending"))
    await pod_status(api, old, failed(container("external-provider-echo", terminated=ENDED)))
    await pod_status(api, new, failed(container("external-provider-echo", running={})))
    newest = await until_status(api, "rows", namespace, at("Installing"))

    assert phases[2]["package"] == "acme-echo"
    assert phases[2]["version"] == "1.2.0"
    assert phases[2]["imageID"] == "example.com/any:1@sha256:0"
    assert newest["externalProviderStatus"][0]["image"] == "example.com/echo:2"


@pytest.mark.accept("FR-029")
@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("extract-distribution-config", "ConfigExtractFailed"),
        ("merge-config", "ConfigMergeFailed"),
        ("llama-stack", "PreflightFailed"),
    ],
)
async def test_failure_after_install_is_in_condition(
    api: Client, stack: Suite, namespace: str, part: str, expected: str
) -> None:
    await api.create(LLSD, llsd("late", namespace, externalProviders={"inference": [ECHO]}), manager="user")
    pod = await new_pod(api, "late", namespace, "example.com/echo:1")
    messages = {
        "exitCode": 1,
        "message": "ERROR: No run.yaml\n\nCode: NoBaseConfig\n\nReason: r\n\nResolution: s",
    }
    state = container(part, waiting={"reason": "CrashLoopBackOff"}, last=messages)
    first = container("external-provider-echo", terminated=DONE)
    status = {"phase": "Pending", "initContainerStatuses": [first]}
    status = (
        {**status, "containerStatuses": [state]}
        if part == "llama-stack"
        else {**status, "initContainerStatuses": [first, state]}
    )

    await pod_status(api, pod, status)

    cr = await until_status(
        api, "late", namespace, lambda status: reason(status, "ExternalProvidersReady") == expected
    )
    assert "No run.yaml" in condition_of(cr, "ExternalProvidersReady")["message"]
    assert part in condition_of(cr, "ExternalProvidersReady")["message"]


async def test_phase_is_ready_while_old_pods_serve(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(LLSD, llsd("serves", namespace, externalProviders={"inference": [ECHO]}), manager="user")
    old = await new_pod(api, "serves", namespace, "example.com/echo:1")
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    running = {
        "phase": "Running",
        "conditions": [ready],
        "initContainerStatuses": [container("external-provider-echo", terminated=DONE)],
        "containerStatuses": [container("llama-stack", running={})],
    }

    await pod_status(api, old, running)
    # two watches: the Deployment's and the pods'
    await until_status(
        api,
        "serves",
        namespace,
        lambda status: (
            (status.get("phase"), reason(status, "ExternalProvidersReady")) == ("Ready", "ProvidersReady")
        ),
    )
    await edit(
        api,
        "serves",
        namespace,
        lambda cr: cr["spec"]["server"]["externalProviders"]["inference"][0].update(
            image="example.com/echo:2"
        ),
    )
    new = await new_pod(api, "serves", namespace, "example.com/echo:2")
    await pod_status(api, new, failed(container("external-provider-echo", terminated=ENDED)))

    status = await until_status(
        api, "serves", namespace, lambda status: reason(status, "ExternalProvidersReady") == "ProviderFailed"
    )
    assert status["phase"] == "Ready"
    assert reason(status, "DeploymentReady") == "CrashLoop"
