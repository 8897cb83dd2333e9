"""An upstream operator is visibly down: reported on its models, and nothing changes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import (
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    MODEL_DEPLOYMENTS,
    PROVIDER_CONFIGS,
    Kind,
    Object,
)
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog, until_logged
from support.deployments import GPU, model_deployment
from support.events import until_event
from support.kinds import UPSTREAM
from support.roles import without
from support.suites import running_suite
from support.waiting import message, reason, serves, until, until_deployment

pytestmark = pytest.mark.integration

OPERATORS = {
    "kaito": "kaito-workspace",
    "dynamo": "dynamo-platform-dynamo-operator-controller-manager",
    "kuberay": "kuberay-operator",
}
"""Names of the operators' Deployments."""

LEADERS = {"dynamo": "dynamo.nvidia.com", "kuberay": "ray-operator-leader"}
"""Names of their Leases; KAITO's operator is installed without an election."""

UP = "UpstreamOperatorUp"
TOLD = {"HeartbeatSeen", "UpstreamOperatorDown", "NoUpstreamProgress"}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core, providers and simulated operators, with short patience."""
    with running_suite(tmp_path_factory.mktemp("operators"), *UPSTREAM) as made:
        for name in ("core", *UPSTREAM):
            patience = {"KUBEFOUNDRY_HEARTBEAT_TIMEOUT": "10"}
            if name != "core":
                # longer than a simulated operator needs to begin, on a busy machine too
                patience["KUBEFOUNDRY_STALE_AFTER"] = "5"
            made.install(name, environment=patience)
        made.start("core", *UPSTREAM)
        yield made


async def running(api: Client, namespace: str, provider: str) -> Object:
    """A ModelDeployment with the name of its provider."""
    body = model_deployment(provider, namespace, GPU, provider=provider)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    return await until_deployment(api, provider, namespace, serves)


async def deploy(api: Client, namespace: str, name: str, *, available: int) -> None:
    """The operator's Deployment, and its status in the place of the controllers that do not run here."""
    head = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace}}
    labels = {"app": name}
    pod = {"containers": [{"name": "operator", "image": "example.com/operator:latest"}]}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    await api.apply(DEPLOYMENTS, {**head, "spec": spec}, manager="test")
    status = {"replicas": 1, "readyReplicas": available, "availableReplicas": available}
    await api.apply_status(DEPLOYMENTS, {**head, "status": status}, manager="test")


async def elect(api: Client, namespace: str, name: str, *, holder: str) -> None:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 3600}
    head = {"apiVersion": LEASES.api_version, "kind": LEASES.kind}
    await api.apply(
        LEASES, {**head, "metadata": {"name": name, "namespace": namespace}, "spec": spec}, manager="test"
    )


async def until_registered(api: Client, provider: str, operator: str | None) -> Object:
    """The registration once it says that of the operator; None: nothing."""
    found = await until(
        api,
        PROVIDER_CONFIGS,
        provider,
        None,
        lambda obj: obj and (condition(obj, UP) or {}).get("status") == operator,
    )
    assert found is not None
    return found


def condition(obj: Object, type_: str) -> dict[str, Any] | None:
    return find((obj.get("status") or {}).get("conditions"), type_)


def what_must_not_move(obj: Object) -> dict[str, Any]:
    status = dict(obj["status"])
    received = ("ProviderHealthy", "StaleStatus")
    status["conditions"] = [item for item in status["conditions"] if item["type"] not in received]
    return {"spec": obj["spec"], "finalizers": obj["metadata"]["finalizers"], "status": status}


async def test_its_deployment_has_no_replica(suite: Suite, api: Client, namespace: str) -> None:
    """All operators at once: it takes patience."""
    await asyncio.gather(*(loses_its_replica(api, namespace, provider) for provider in OPERATORS))


@pytest.fixture(autouse=True)
def believed(suite: Suite, namespace: str) -> None:
    """An administrator says that operators are in the test's namespace."""
    suite.plane.kubectl("label", "namespace", namespace, f"{names.OPERATORS_LABEL}=true")


async def loses_its_replica(api: Client, namespace: str, provider: str) -> None:
    name = OPERATORS[provider]
    await deploy(api, namespace, name, available=1)
    await until_registered(api, provider, "True")
    before = await running(api, namespace, provider)
    # On a busy machine the short patience may have ended while the model started.
    earlier = await events_of(api, namespace, provider)
    upstream = await api.get(UPSTREAM[provider], provider, namespace)

    await deploy(api, namespace, name, available=0)

    registered = await until_registered(api, provider, "False")
    said = f"Deployment {namespace}/{name} has no available replica"
    assert (condition(registered, UP) or {})["message"] == f"{said}; check why its pods do not run"
    assert registered["status"]["ready"] is True
    down = await until_deployment(
        api,
        provider,
        namespace,
        lambda obj: (
            reason(obj, "ProviderHealthy") == "UpstreamOperatorDown"
            and reason(obj, "StaleStatus") is not None
        ),
    )
    assert said in message(down, "ProviderHealthy")
    assert said in message(down, "StaleStatus")
    assert what_must_not_move(down) == what_must_not_move(before)

    await deploy(api, namespace, name, available=1)

    back = await until_deployment(
        api,
        provider,
        namespace,
        lambda obj: reason(obj, "ProviderHealthy") == "HeartbeatSeen" and reason(obj, "StaleStatus") is None,
    )
    assert what_must_not_move(back) == what_must_not_move(before)
    assert await api.get(UPSTREAM[provider], provider, namespace) == upstream
    await until_event(api, namespace, "HeartbeatSeen", lambda note: f"Provider {provider} " in note)
    later = await events_of(api, namespace, provider)
    await remove(api, DEPLOYMENTS, name, namespace)
    await until_registered(api, provider, None)
    # An Event that was sent earlier is not sent again within ten minutes.
    sent = [event["reason"] for uid, event in later.items() if uid not in earlier]
    assert sorted({*sent, *(event["reason"] for event in earlier.values())}) == sorted(TOLD)
    assert len(sent) == len(set(sent))


async def events_of(api: Client, namespace: str, model: str) -> dict[str, Object]:
    """The Events of a model that have a reason of this test, by uid."""
    events, _ = await api.list(EVENTS, namespace)
    return {
        event["metadata"]["uid"]: event
        for event in events
        if event["regarding"]["name"] == model and event["reason"] in TOLD
    }


async def test_nobody_holds_its_lease(suite: Suite, api: Client, namespace: str) -> None:
    await asyncio.gather(*(loses_its_leader(api, namespace, provider) for provider in LEADERS))


async def loses_its_leader(api: Client, namespace: str, provider: str) -> None:
    name = LEADERS[provider]
    await elect(api, namespace, name, holder="somebody")
    await until_registered(api, provider, "True")
    before = await running(api, namespace, provider)

    await elect(api, namespace, name, holder="")

    down = await until_deployment(
        api, provider, namespace, lambda obj: reason(obj, "ProviderHealthy") == "UpstreamOperatorDown"
    )
    assert f"Lease {namespace}/{name} has no holder" in message(down, "ProviderHealthy")
    assert what_must_not_move(down) == what_must_not_move(before)
    await elect(api, namespace, name, holder="somebody else")
    await until_deployment(
        api, provider, namespace, lambda obj: reason(obj, "ProviderHealthy") == "HeartbeatSeen"
    )
    await remove(api, LEASES, name, namespace)
    await until_registered(api, provider, None)


async def test_hidden_upstream_operator_is_not_reported_or_retried(
    suite: Suite, api: Client, namespace: str
) -> None:
    deployments = f"deployments.apps/{OPERATORS['kuberay']}"
    leases = f"leases.coordination.k8s.io/{LEADERS['kuberay']}"
    suite.components["kuberay"].stop()
    with (
        without(suite.plane, "provider-kuberay", deployments, "list", "watch"),
        without(suite.plane, "provider-kuberay", leases, "list", "watch"),
    ):
        await deploy(api, namespace, OPERATORS["kuberay"], available=0)
        log = AuditLog(suite)
        started = await api.get(PROVIDER_CONFIGS, "kuberay")
        suite.start("kuberay")

        # Each is asked for at the start, and again as long as the answer is no.
        await until_logged(lambda: resources(requests(log)), lambda it: it["selfsubjectaccessreviews"] > 2)
        reported = await until(
            api,
            PROVIDER_CONFIGS,
            "kuberay",
            None,
            lambda obj: obj and obj["status"]["lastHeartbeat"] != started["status"]["lastHeartbeat"],
        )
        await running(api, namespace, "kuberay")

        assert reported is not None
        assert condition(reported, UP) is None
        asked = requests(log)
        assert "deployments" not in resources(asked)
        assert [entry["requestURI"] for entry in asked if entry["responseStatus"]["code"] == 403] == []
        await remove(api, DEPLOYMENTS, OPERATORS["kuberay"], namespace)


def requests(log: AuditLog) -> list[dict[str, Any]]:
    """Those of the provider of KubeRay."""
    return [entry for component, entry in log.all() if component == "provider-kuberay"]


def resources(asked: list[dict[str, Any]]) -> Counter[str | None]:
    return Counter(entry.get("objectRef", {}).get("resource") for entry in asked)


async def remove(api: Client, kind: Kind, name: str, namespace: str) -> None:
    live = await api.get(kind, name, namespace)
    await api.delete(kind, name, namespace, uid=live["metadata"]["uid"])
