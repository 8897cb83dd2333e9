"""Ready names a generation only after the upstream operator has processed it, and the one before until then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import GPU, model_deployment
from support.edits import running, until_upstream
from support.foreign import foreign
from support.kinds import UPSTREAM
from support.refusing_webhook import refusing
from support.waiting import SECONDS, serves, until_deployment
from support.wishes import edit_model

pytestmark = pytest.mark.integration

LONGEST = 3.0
"""Seconds between KubeRay's acknowledgement and what Serve makes of an edit: its loop of 2 s, and one to spare."""

FAIL = "kubefoundry.ai/simulator-fail"


async def test_new_models_wait_for_no_settled_status(suite: Suite, api: Client, namespace: str) -> None:
    """KubeRay rewrites a new object. A provider with many models sees it again only once it serves."""
    names = {f"m-{number}" for number in range(20)}
    _, version = await api.list(MODEL_DEPLOYMENTS, namespace)

    await asyncio.gather(
        *(
            api.create(
                MODEL_DEPLOYMENTS, model_deployment(name, namespace, GPU, provider="kuberay"), manager="test"
            )
            for name in names
        )
    )

    messages, serving = set(), set[str]()
    async with asyncio.timeout(SECONDS):
        async for event in api.watch(
            MODEL_DEPLOYMENTS, namespace, resource_version=version, seconds=600, silence=600
        ):
            obj = event["object"]
            messages.add((obj.get("status") or {}).get("message"))
            if serves(obj):
                serving.add(obj["metadata"]["name"])
            if serving == names:
                break
    assert [message for message in messages if message and "settle" in message] == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("/spec/engine/contextLength", 4096, id="in the Serve configuration"),
        pytest.param("/spec/image", "example.com/ray-llm:2.60.0", id="in the pods"),
    ],
)
async def test_edit_that_kuberay_has_not_seen_is_not_ready(
    suite: Suite, api: Client, namespace: str, path: str, value: Any
) -> None:
    before = await running(api, namespace, GPU, "kuberay")
    old = before["metadata"]["generation"]
    live = await api.get(UPSTREAM["kuberay"], "m", namespace)

    edited = await edit_model(
        api,
        namespace,
        {"op": "add", "path": "/metadata/labels", "value": {FAIL: "frozen"}},
        {"op": "add", "path": path, "value": value},
    )

    new = edited["metadata"]["generation"]
    await until_upstream(
        api,
        UPSTREAM["kuberay"],
        namespace,
        lambda obj: obj["metadata"]["generation"] > live["metadata"]["generation"],
    )
    unseen = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: "the KubeRay operator has not seen the newest generation yet" in obj["status"]["message"],
    )
    assert ready(unseen) == ("True", old)
    assert unseen["status"]["observedGeneration"] == old
    assert (find(unseen["status"]["conditions"], "ResourceCreated") or {})["observedGeneration"] == new

    await edit_model(api, namespace, {"op": "remove", "path": "/metadata/labels"})

    await until_deployment(api, "m", namespace, lambda obj: ready(obj) == ("True", new))


async def test_ready_waits_until_ray_serve_has_deployed_the_edit(
    suite: Suite, api: Client, namespace: str
) -> None:
    before = await running(api, namespace, GPU, "kuberay")
    old = before["metadata"]["generation"]
    log = AuditLog(suite)

    edited = await edit_model(
        api,
        namespace,
        {"op": "add", "path": "/metadata/labels", "value": {FAIL: "updating"}},
        {"op": "add", "path": "/spec/engine/contextLength", "value": 4096},
    )

    new = edited["metadata"]["generation"]
    states: list[tuple[str, int]] = []
    async for event in api.watch(
        MODEL_DEPLOYMENTS,
        namespace,
        resource_version=edited["metadata"]["resourceVersion"],
        seconds=600,
        silence=600,
    ):
        if event["type"] == "MODIFIED":
            states.append(ready(event["object"]))
        if states and states[-1] == ("False", new):
            break
    # the only engine is replaced: it must not be called ready at the new generation before that
    assert set(states) <= {("True", old), ("False", new)} or operator_lagged(log, namespace)

    await edit_model(api, namespace, {"op": "remove", "path": "/metadata/labels"})

    await until_deployment(api, "m", namespace, lambda obj: ready(obj) == ("True", new))


BAD, GOOD = "example.com/bad:1.0.0", "example.com/good:1.0.0"

NOT_IN_FORCE = [
    pytest.param({"path": "/spec/image", "value": BAD}, "; the last good version", id="refused by admission"),
    pytest.param(
        {"path": "/spec/provider/name", "value": "nosuch"},
        "Provider 'nosuch' is not registered",
        id="not registered",
    ),
]


@pytest.mark.parametrize("provider", UPSTREAM)
@pytest.mark.parametrize(("change", "words"), NOT_IN_FORCE)
async def test_edit_not_in_force_keeps_the_generation(
    suite: Suite, api: Client, namespace: str, provider: str, change: dict[str, Any], words: str
) -> None:
    before = await running(api, namespace, {**GPU, "image": GOOD}, provider)
    old = before["metadata"]["generation"]
    kind = UPSTREAM[provider]

    async with refusing(
        api,
        kind,
        namespace,
        marker=BAD,
        code=403,
        words="no",
        example=foreign(provider, "example", namespace),
    ):
        edited = await edit_model(api, namespace, {"op": "add", **change})
        seen = await states(api, namespace, edited, lambda obj: words in obj["status"]["message"])

        assert edited["metadata"]["generation"] == old + 1
        assert seen[-1] == ("True", old)
        assert ("True", old + 1) not in seen
        await edit_model(api, namespace, {"op": "replace", "path": "/spec", "value": before["spec"]})

        back = await states(api, namespace, edited, lambda obj: ready(obj) == ("True", old + 2))

        assert ("True", old + 1) not in back


async def test_dry_run_of_an_edit_keeps_the_generation(suite: Suite, api: Client, namespace: str) -> None:
    before = await running(api, namespace, GPU, "dynamo")
    old = before["metadata"]["generation"]

    edited = await edit_model(
        api,
        namespace,
        {"op": "add", "path": "/metadata/annotations", "value": {"kubefoundry.ai/dry-run": "true"}},
        {"op": "add", "path": "/spec/engine/contextLength", "value": 4096},
    )
    seen = await states(
        api, namespace, edited, lambda obj: "kubefoundry.ai/dry-run-result" in obj["metadata"]["annotations"]
    )

    assert ("True", old + 1) not in seen


async def states(
    api: Client, namespace: str, since: Object, holds: Callable[[Object], bool]
) -> list[tuple[str, int]]:
    """All states of Ready after `since`, until `holds` is true of an event's object."""
    found: list[tuple[str, int]] = []
    version = since["metadata"]["resourceVersion"]
    async for event in api.watch(
        MODEL_DEPLOYMENTS, namespace, resource_version=version, seconds=600, silence=600
    ):
        if event["type"] == "MODIFIED":
            found.append(ready(event["object"]))
            if holds(event["object"]):
                return found
    raise AssertionError(f"the state was not reached; seen: {found}")


def operator_lagged(log: AuditLog, namespace: str) -> bool:
    """Whether the simulated KubeRay, on a machine too busy for it, took longer between acknowledging the edit and
    showing what Serve makes of it than the real one ever does: the component cannot know better then."""
    taken_up, shown = (
        datetime.fromisoformat(entry["stageTimestamp"])
        for entry in log.simulated(namespace, "rayservices/status")[:2]
    )
    return (shown - taken_up).total_seconds() > LONGEST


def ready(obj: Object) -> tuple[str, int]:
    """Status of Ready, and the generation that it speaks of."""
    found = find(obj["status"]["conditions"], "Ready") or {}
    return found["status"], found["observedGeneration"]
