"""A provider's process disappears: reported once, running models keep running, and core cleans up."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count, pairwise
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import EVENTS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import WRITES, AuditLog, until_logged
from support.deployments import GPU, model_deployment
from support.edits import running
from support.events import until_event
from support.kinds import GRAPHS, WORKSPACES
from support.namespaces import new_namespace
from support.restarts import uninstalled
from support.suites import running_suite
from support.waiting import message, phase, reason, until, until_deployment

pytestmark = pytest.mark.integration

SGLANG = {**GPU, "engine": {"type": "sglang"}}
"""Only Dynamo can."""

Gone = Callable[[Suite, str], AbstractContextManager[None]]

SILENCE = "10"
CLEAN_UP = "2"
"""Seconds, in place of 3 and 5 minutes; the heartbeat comes three times in a silence."""

PATIENCE = {"KUBEFOUNDRY_HEARTBEAT_TIMEOUT": SILENCE, "KUBEFOUNDRY_FINALIZER_TIMEOUT": CLEAN_UP}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core, selector, two providers and simulated operators, with short patience."""
    with running_suite(tmp_path_factory.mktemp("silence"), "kaito", "dynamo") as made:
        for name in ("core", "selector", "kaito", "dynamo"):
            made.install(name, environment=PATIENCE)
        made.start("core", "selector", "kaito", "dynamo")
        yield made


@contextmanager
def crashed(suite: Suite, provider: str) -> Iterator[None]:
    suite.components[provider].kill()
    try:
        yield
    finally:
        suite.start(provider)


GONE = pytest.mark.parametrize(
    "gone", [crashed, partial(uninstalled, environment=PATIENCE)], ids=["crashed", "uninstalled"]
)


def what_must_not_move(obj: Object) -> dict[str, Any]:
    """Of a ModelDeployment: all but what core says of the provider's health."""
    status = dict(obj["status"])
    status["conditions"] = [item for item in status["conditions"] if item["type"] != "ProviderHealthy"]
    return {"spec": obj["spec"], "finalizers": obj["metadata"]["finalizers"], "status": status}


async def test_silent_provider_is_reported_once_and_moves_no_model(
    suite: Suite, api: Client, namespace: str
) -> None:
    before = {
        "named": await running(api, namespace, GPU, "dynamo", "named"),
        "chosen": await running(api, namespace, SGLANG, None, "chosen"),
    }
    graphs = {name: await api.get(GRAPHS, name, namespace) for name in before}
    log = AuditLog(suite)

    with crashed(suite, "dynamo"):
        for name, obj in before.items():
            lost = await until_deployment(
                api, name, namespace, lambda it: reason(it, "ProviderHealthy") == "HeartbeatLost"
            )
            assert what_must_not_move(lost) == what_must_not_move(obj)
            assert message(lost, "ProviderHealthy").startswith(
                f"Provider dynamo has sent no heartbeat for {SILENCE} s: "
            )
        await until_reported(api, namespace, "HeartbeatLost", len(before))
        # A core that has just started knows nothing of the provider yet, and so takes nothing back.
        suite.components["core"].stop()
        suite.start("core")
        await until_the_selector_agrees(api)
        await api.create(MODEL_DEPLOYMENTS, model_deployment("late", namespace, SGLANG), manager="test")
        late = await until_deployment(
            api, "late", namespace, lambda it: reason(it, "ProviderSelected") is not None
        )
        assert reason(late, "ProviderSelected") == "NoMatchingProvider"
        assert "dynamo sends no heartbeat" in message(late, "ProviderSelected")
        # Core's word to each, its first one to the late one; the selector's to that one, which core repeats in the
        # message; nothing of anybody else.
        expected = {("core", "named"): 1, ("core", "chosen"): 1, ("core", "late"): 2, ("selector", "late"): 1}
        assert await until_logged(lambda: writes(log, namespace), lambda found: found == expected) == expected

    for name, obj in before.items():
        back = await until_deployment(
            api, name, namespace, lambda it: reason(it, "ProviderHealthy") == "HeartbeatSeen"
        )
        assert what_must_not_move(back) == what_must_not_move(obj)
        assert await api.get(GRAPHS, name, namespace) == graphs[name]
    await until_deployment(api, "late", namespace, lambda it: phase(it) == "Running")
    # Core sends its Events in order: when it has reported that both are well again, it has reported everything.
    await until_reported(api, namespace, "HeartbeatSeen", len(before))
    events = await health_events(api, namespace)
    lost_event, seen_event = ("HeartbeatLost", "Warning"), ("HeartbeatSeen", "Normal")
    assert events.keys() == before.keys()
    for reported in events.values():
        assert set(reported) == {lost_event, seen_event}
        # One of each core: a disk that stalls for SILENCE makes a provider silent that is at work.
        assert max(Counter(reported).values()) <= 2
        # The core that has just started does not report the same silence again.
        assert (lost_event, lost_event) not in pairwise(reported)


async def test_reinstalled_provider_changes_nothing(suite: Suite, api: Client, namespace: str) -> None:
    before = await running(api, namespace, GPU, "dynamo")
    graph = await api.get(GRAPHS, "m", namespace)

    with uninstalled(suite, "dynamo", PATIENCE):
        lost = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ProviderHealthy") == "HeartbeatLost"
        )
        assert what_must_not_move(lost) == what_must_not_move(before)

    back = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderHealthy") == "HeartbeatSeen"
    )
    assert what_must_not_move(back) == what_must_not_move(before)
    assert await api.get(GRAPHS, "m", namespace) == graph


async def test_outage_of_the_api_server_is_nobodys_silence(suite: Suite, api: Client, namespace: str) -> None:
    await running(api, namespace, GPU, "dynamo")

    await asyncio.to_thread(suite.plane.stop_api_server)
    await asyncio.sleep(1.5 * float(SILENCE))
    await asyncio.to_thread(suite.plane.restart_api_server)

    # Both are at work again: core has nothing to say of the provider's health, or says it before the provider's turn.
    change = [{"op": "add", "path": "/spec/scaling/replicas", "value": 2}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, change, manager="test")
    served = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: phase(obj) == "Running" and obj["status"]["replicas"]["ready"] == 2,
    )
    assert reason(served, "ProviderHealthy") is None
    assert await health_events(api, namespace) == {}


async def test_deletion_is_reported_while_the_provider_is_down(
    suite: Suite, api: Client, namespace: str
) -> None:
    made = await running(api, namespace, GPU, "dynamo")

    with crashed(suite, "dynamo"):
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

        deleted = await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Terminating")
        assert reason(deleted, "Ready") == "Progressing"
        assert message(deleted, "Ready") == "Waiting for finalizers: kubefoundry.ai/dynamo-provider"

    # The provider is back and takes the fields over.
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    await until(api, GRAPHS, "m", namespace, lambda obj: obj is None)


async def test_finalizer_of_a_silent_provider_times_out(suite: Suite, api: Client, namespace: str) -> None:
    made = await running(api, namespace, GPU, "dynamo")

    with crashed(suite, "dynamo"):
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

        await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
        note = await until_event(api, namespace, "FinalizerTimeout")
        assert f"DynamoGraphDeployment {namespace}/m" in note
        # What the finalizer stood for, the garbage collector does.
        await until(api, GRAPHS, "m", namespace, lambda obj: obj is None, seconds=300)


@GONE
async def test_silent_providers_endpoint_goes_after_the_handover(
    suite: Suite, api: Client, namespace: str, gone: Gone
) -> None:
    await running(api, namespace, GPU, "dynamo")

    with gone(suite, "dynamo"):
        change = [{"op": "replace", "path": "/spec/provider/name", "value": "kaito"}]
        await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, change, manager="test")

        # Kaito is heard again where a disk has stalled for SILENCE, and dynamo is not.
        taken = await until_deployment(
            api,
            "m",
            namespace,
            lambda obj: (
                phase(obj) == "Running"
                and "dynamo-provider" not in owners(obj)
                and reason(obj, "ProviderHealthy") != "HeartbeatLost"
            ),
        )
        assert taken["status"]["provider"]["resourceKind"] == WORKSPACES.kind
        assert taken["status"]["endpoint"]["service"] == "m"
        assert "Provider dynamo has not cleaned up in 2 s" in await until_event(
            api, namespace, "FinalizerTimeout"
        )
        # It may come back, and has something to do then.
        assert "kubefoundry.ai/dynamo-provider" in taken["metadata"]["finalizers"]

    await until(api, GRAPHS, "m", namespace, lambda obj: obj is None)
    await until_deployment(
        api, "m", namespace, lambda obj: obj["metadata"]["finalizers"] == ["kubefoundry.ai/kaito-provider"]
    )


@GONE
async def test_objects_stay_when_the_successor_refuses(
    suite: Suite, api: Client, namespace: str, gone: Gone
) -> None:
    await running(api, namespace, SGLANG, "dynamo")
    graph = await api.get(GRAPHS, "m", namespace)

    with gone(suite, "dynamo"):
        change = [{"op": "replace", "path": "/spec/provider/name", "value": "kaito"}]
        await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, change, manager="test")

        kept = await until_deployment(
            api,
            "m",
            namespace,
            lambda obj: (
                reason(obj, "ProviderCompatible") == "Unsupported"
                and reason(obj, "ProviderHealthy") == "HeartbeatLost"
            ),
        )
        assert "sglang" in message(kept, "ProviderCompatible")
        assert message(kept, "ProviderHealthy").startswith("Provider dynamo ")
        assert (phase(kept), kept["status"]["endpoint"]["service"]) == ("Running", "m-frontend")
        assert (await api.get(GRAPHS, "m", namespace)) == graph

    received = await until_deployment(
        api, "m", namespace, lambda obj: "Provider kaito cannot take over" in obj["status"]["message"]
    )
    assert received["status"]["message"].endswith("; the last good version keeps serving")
    await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ProviderHealthy") == "HeartbeatSeen")
    assert (await api.get(GRAPHS, "m", namespace))["metadata"]["uid"] == graph["metadata"]["uid"]


def owners(obj: Object) -> set[str]:
    """Who owns fields of the status."""
    return {
        entry["manager"] for entry in obj["metadata"]["managedFields"] if entry.get("subresource") == "status"
    }


async def until_the_selector_agrees(api: Client) -> None:
    """Until it counts Dynamo as silent, too: by its own clock, from when it saw the last heartbeat itself.

    It shows that only by what it selects, for models in a namespace that nobody looks at.
    """
    namespace = await new_namespace(api)
    for number in count():
        name = f"asks-{number}"
        await api.create(MODEL_DEPLOYMENTS, model_deployment(name, namespace, SGLANG), manager="test")
        asked = await until_deployment(
            api, name, namespace, lambda it: reason(it, "ProviderSelected") is not None
        )
        if reason(asked, "ProviderSelected") == "NoMatchingProvider":
            await api.delete(MODEL_DEPLOYMENTS, name, namespace, uid=asked["metadata"]["uid"])
            return


async def until_reported(api: Client, namespace: str, reason: str, times: int) -> None:
    """Until there are so many Events of that reason."""
    number = count(1)
    await until_event(api, namespace, reason, lambda note: next(number) == times)


async def health_events(api: Client, namespace: str) -> dict[str, list[tuple[str, str]]]:
    """Return reason and type of the Events of a provider's health about each object, the oldest first."""
    events, _ = await api.list(EVENTS, namespace)
    of_health = [
        event
        for event in events
        if event["reason"] in ("HeartbeatLost", "HeartbeatSeen", "UpstreamOperatorDown")
    ]
    by_name: dict[str, list[tuple[str, str]]] = {}
    for event in sorted(of_health, key=lambda event: str(event["eventTime"])):
        by_name.setdefault(event["regarding"]["name"], []).append((event["reason"], event["type"]))
    return by_name


def writes(log: AuditLog, namespace: str) -> Counter[tuple[str, str]]:
    """How often which component wrote which object, Events apart."""
    return Counter(
        (component, entry["objectRef"].get("name", ""))
        for component, entry in log.all(namespace)
        if entry["verb"] in WRITES and entry["objectRef"]["resource"] != "events"
    )
