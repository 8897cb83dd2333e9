"""Tests the status of services of providers at a real API server, with this CRD and that of the release before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubefoundry_llamastack.api.crd import definition
from kubefoundry_llamastack.names import LLSD
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._cluster.client import Client
from support.events import until_event
from support.llamastack import (
    ECHO,
    GUARD,
    condition_of,
    container,
    crd_without_services,
    llsd,
    new_pod,
    pod_status,
    reason,
    until_status,
)

pytestmark = pytest.mark.integration

Object = dict[str, Any]

DONE: Object = {"exitCode": 0}


async def test_status_is_written_to_crd_of_earlier_release(api: Client, idle: Suite) -> None:
    """Otherwise, the API server refuses the whole status."""
    idle.plane.kubectl("replace", "-f", "-", input=json.dumps(crd_without_services()))
    idle.start("llamastack")

    await api.create(LLSD, llsd("old", "default", externalProviders={"inference": [ECHO]}), manager="user")
    earlier = await until_status(api, "old", "default", lambda status: status.get("externalProviderStatus"))
    idle.plane.kubectl("replace", "-f", "-", input=json.dumps(definition()))
    newer = await until_status(api, "old", "default", lambda status: status.get("providersReady"))

    assert reason(earlier, "DeploymentReady") == "DeploymentPending"
    assert "providersReady" not in earlier
    assert newer["providersReady"] == "0/1"
    assert newer["externalProviderStatus"][0]["mode"] == "Inline"


async def test_crashing_service_is_reported_in_status_and_event(api: Client, idle: Suite) -> None:
    idle.install("llamastack", environment={"KUBEFOUNDRY_PROVIDER_SERVICES": "true"})
    idle.start("llamastack")
    providers = {"inference": [ECHO], "safety": [{**GUARD, "service": {}}]}
    await api.create(LLSD, llsd("chat", "default", externalProviders=providers), manager="user")
    pod = await new_pod(api, "chat", "default", "example.com/echo:1")
    installed = [container(f"external-provider-{item}", terminated=DONE) for item in ("echo", "guard")]
    service = container("provider-guard", running={})
    server = {**container("llama-stack", running={}), "started": True}

    await pod_status(
        api,
        pod,
        {"phase": "Running", "initContainerStatuses": [*installed, service], "containerStatuses": [server]},
    )
    healthy = await until_status(api, "chat", "default", lambda status: status.get("providersReady") == "2/2")
    ended = {"exitCode": 3, "reason": "Error"}
    crashed = container("provider-guard", waiting={"reason": "CrashLoopBackOff"}, last=ended)
    await pod_status(
        api,
        pod,
        {"phase": "Running", "initContainerStatuses": [*installed, crashed], "containerStatuses": [server]},
    )
    degraded = await until_status(
        api, "chat", "default", lambda status: condition_of(status, "ProviderDegraded")
    )
    await until_event(api, "default", "ServiceCrashLoop")
    table = idle.plane.kubectl("get", "llsd", "chat").stdout

    assert condition_of(healthy, "ProviderDegraded") == {}
    assert reason(degraded, "ProviderDegraded") == "ServiceCrashLoop"
    assert reason(degraded, "ExternalProvidersReady") == "ServiceNotReady"
    [row] = [item for item in degraded["externalProviderStatus"] if item["providerId"] == "guard"]
    assert (row["mode"], row["container"]) == ("Sidecar", "provider-guard")
    assert (row["ready"], row["restarts"]) == (False, 1)
    assert "1/2" in table
