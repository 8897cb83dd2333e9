"""A ModelDeployment moves to another provider: in order, never served by two, and only on request."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._cluster.client import Client
from support.changes.seen import runs
from support.deployments import GPU
from support.edits import running
from support.events import notes, until_event
from support.finalizers import held
from support.kinds import UPSTREAM
from support.restarts import restarted
from support.waiting import message, phase, reason, until, until_deployment
from support.wishes import edit_model

pytestmark = pytest.mark.integration

ENDPOINTS = {"kaito": "m", "dynamo": "m-frontend", "kuberay": "m-serve-svc"}

GARBAGE = 300.0
"""Bound on a hand-over: an operator waits until the garbage collector, which learns of new kinds every 30 s only, has
taken the Services of the object before."""


async def to(api: Client, namespace: str, provider: str) -> Object:
    return await edit_model(
        api, namespace, {"op": "replace", "path": "/spec/provider/name", "value": provider}
    )


async def exists(api: Client, provider: str, namespace: str) -> bool:
    objects, _ = await api.list(UPSTREAM[provider], namespace)
    return bool(objects)


def served_by(provider: str) -> Any:
    """Whether it runs on that provider, and no trace of another is left on it."""

    def holds(obj: Object) -> bool:
        managers = {entry["manager"] for entry in obj["metadata"]["managedFields"]}
        others = {f"{other}-provider" for other in UPSTREAM if other != provider}
        return (
            phase(obj) == "Running"
            and obj["status"]["provider"]["name"] == provider
            and obj["status"]["provider"].get("resourceKind") == UPSTREAM[provider].kind
            and obj["status"]["endpoint"]["service"] == ENDPOINTS[provider]
            and obj["metadata"]["finalizers"] == [f"kubefoundry.ai/{provider}-provider"]
            and not managers & others
        )

    return holds


@pytest.mark.parametrize(
    ("old", "new"), [("kaito", "dynamo"), ("dynamo", "kuberay"), ("kuberay", "kaito"), ("kuberay", "dynamo")]
)
async def test_new_provider_begins_when_the_old_one_has_cleaned_up(
    suite: Suite, api: Client, namespace: str, old: str, new: str
) -> None:
    await running(api, namespace, GPU, old)

    async with held(api, UPSTREAM[old], namespace):
        await to(api, namespace, new)
        waiting = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "WaitingForCleanup"
        )
        await until(
            api, UPSTREAM[old], "m", namespace, lambda obj: obj and "deletionTimestamp" in obj["metadata"]
        )
        assert message(waiting, "ResourceCreated") == (
            f"Waiting for provider {old} to remove the objects that it created for this ModelDeployment, and "
            f"finalizer kubefoundry.ai/{old}-provider"
        )
        assert not await exists(api, new, namespace)
        # what still serves stays published
        assert waiting["status"]["endpoint"]["service"] == ENDPOINTS[old]

    await until_deployment(api, "m", namespace, served_by(new), seconds=GARBAGE)
    assert not await exists(api, old, namespace)


async def test_back_before_the_old_provider_is_done(suite: Suite, api: Client, namespace: str) -> None:
    await running(api, namespace, GPU, "dynamo")

    async with held(api, UPSTREAM["dynamo"], namespace):
        await to(api, namespace, "kuberay")
        await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "WaitingForCleanup"
        )
        await until(
            api,
            UPSTREAM["dynamo"],
            "m",
            namespace,
            lambda obj: obj and "deletionTimestamp" in obj["metadata"],
        )
        await to(api, namespace, "dynamo")
        await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "Recreating"
        )

    await until_deployment(api, "m", namespace, served_by("dynamo"), seconds=GARBAGE)
    assert not await exists(api, "kuberay", namespace)


@pytest.mark.parametrize(
    ("operations", "new"),
    [
        pytest.param(
            [{"path": "/metadata/annotations", "value": {"kubefoundry.ai/reselect": "1"}}],
            "dynamo",
            id="reselect",
        ),
        pytest.param(
            [
                {"path": "/spec/resources/gpu", "value": {"count": 0}},
                {"path": "/spec/engine", "value": {"type": "llamacpp"}},
                {"path": "/spec/image", "value": "example.com/llama-cpp:1.0.0"},
            ],
            "kaito",
            id="a spec that it cannot do",
        ),
    ],
)
async def test_selector_hands_over_when_the_user_asks_for_it(
    suite: Suite, api: Client, namespace: str, operations: list[dict[str, Any]], new: str
) -> None:
    await running(api, namespace, GPU, "kuberay")
    given_back = await edit_model(api, namespace, {"op": "remove", "path": "/spec/provider"})
    await kept(api, namespace, given_back, "kuberay")

    await edit_model(api, namespace, *({"op": "add", **operation} for operation in operations))

    await until_deployment(api, "m", namespace, served_by(new), seconds=GARBAGE)
    assert not await exists(api, "kuberay", namespace)


async def kept(api: Client, namespace: str, edited: Object, provider: str) -> None:
    """Waits until the selector and the provider have seen that generation, which stays with the provider."""
    judged = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (
            (find(obj["status"]["conditions"], "ProviderSelected") or {}).get("observedGeneration")
            == edited["metadata"]["generation"]
            and reason(obj, "ProviderSelected") == "AutoSelected"
            and obj["status"]["observedGeneration"] == edited["metadata"]["generation"]
        ),
    )
    assert judged["status"]["provider"]["name"] == provider


async def test_handover_needs_more_than_a_lost_registration(
    suite: Suite, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "kuberay")
    before = await until(api, UPSTREAM["kuberay"], "m", namespace, runs)
    assert before is not None

    edited = await edit_model(api, namespace, {"op": "remove", "path": "/spec/provider"})
    await kept(api, namespace, edited, "kuberay")

    registered = await api.get(PROVIDER_CONFIGS, "kuberay")
    uid = registered["metadata"]["uid"]
    await api.delete(PROVIDER_CONFIGS, "kuberay", None, uid=uid)
    with restarted(suite.components["kuberay"], {}):
        await until(
            api,
            PROVIDER_CONFIGS,
            "kuberay",
            None,
            lambda obj: (
                obj is not None
                and obj["metadata"]["uid"] != uid
                and (obj.get("status") or {}).get("ready") is True
            ),
        )
        await edit_model(api, namespace, {"op": "add", "path": "/spec/scaling/replicas", "value": 2})
        await until_deployment(
            api, "m", namespace, lambda obj: (obj["status"].get("replicas") or {}).get("ready") == 2
        )

    after = await api.get(UPSTREAM["kuberay"], "m", namespace)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert served_by("kuberay")(await api.get(MODEL_DEPLOYMENTS, "m", namespace))


async def test_handover_survives_a_stuck_provider_that_cleans_up(
    suite: Suite, api: Client, namespace: str
) -> None:
    with restarted(suite.components["dynamo"], {"KUBEFOUNDRY_FINALIZER_TIMEOUT": "3"}):
        await running(api, namespace, GPU, "kaito")
        suite.components["kaito"].stop()
        try:
            await to(api, namespace, "dynamo")

            taken = await until_deployment(
                api,
                "m",
                namespace,
                lambda obj: (
                    phase(obj) == "Running"
                    and obj["status"]["provider"].get("resourceKind") == UPSTREAM["dynamo"].kind
                ),
            )
            assert "kubefoundry.ai/kaito-provider" in taken["metadata"]["finalizers"]
            assert await exists(api, "kaito", namespace)
            note = await until_event(api, namespace, "FinalizerTimeout")
            assert note == (
                "Provider kaito has not cleaned up in 3 s; continuing without it. "
                "Its objects may still run: delete them yourself"
            )
            assert await notes(api, namespace, "FinalizerTimeout") == [note]
        finally:
            suite.components["kaito"].start()
            suite.components["kaito"].wait_ready()

        await until_deployment(api, "m", namespace, served_by("dynamo"))
        await until(api, UPSTREAM["kaito"], "m", namespace, lambda obj: obj is None)
