"""Deleting a ModelDeployment deletes its objects, and never stays unfinished for good."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import GPU, model_deployment
from support.edits import create_model
from support.finalizers import hold, let_go
from support.kinds import UPSTREAM
from support.restarts import stopped
from support.waiting import message, phase, reason, serves, until, until_deployment

pytestmark = pytest.mark.integration

EVERY = pytest.mark.parametrize("provider", UPSTREAM)


@EVERY
async def test_finalizer_is_there_before_anything_upstream(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    log = AuditLog(suite)
    await create_model(api, namespace, GPU, provider)
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")

    done = [
        entry["objectRef"]["resource"]
        for component, entry in log.all(namespace)
        if component == f"provider-{provider}"
        and entry["verb"] in ("create", "patch")
        and entry["objectRef"]["resource"] != "events"
        and "subresource" not in entry["objectRef"]
    ]
    assert done[0] == "modeldeployments"
    assert UPSTREAM[provider].plural in done


@EVERY
async def test_upstream_object_goes_first(suite: Suite, api: Client, namespace: str, provider: str) -> None:
    kind = UPSTREAM[provider]
    made = await create_model(api, namespace, GPU, provider)
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    await hold(api, kind, namespace)

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    leaving = await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Terminating")
    assert reason(leaving, "ResourceCreated") == "Terminating"
    assert message(leaving, "ResourceCreated").startswith(f"Waiting for {kind.kind} {namespace}/m")
    assert reason(leaving, "Ready") == "Progressing"
    upstream = await until(
        api, kind, "m", namespace, lambda obj: obj is None or "deletionTimestamp" in obj["metadata"]
    )
    assert upstream is not None
    assert f"kubefoundry.ai/{provider}-provider" in leaving["metadata"]["finalizers"]
    await let_go(api, kind, namespace)
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    await until(api, kind, "m", namespace, lambda obj: obj is None)


@EVERY
async def test_made_again_at_once_under_the_same_name(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]

    for awaited in ("Pending", "Deploying", "Running") * 3 + ("Pending",):
        made = await create_model(api, namespace, GPU, provider)
        await until_deployment(api, "m", namespace, has_come_to(awaited))
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])
        await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    last = await create_model(api, namespace, GPU, provider)

    running = await until_deployment(api, "m", namespace, serves)
    uid = str(last["metadata"]["uid"])
    assert running["metadata"]["uid"] == uid
    for kind_ in (kind, CONFIG_MAPS):
        objects, _ = await api.list(
            kind_, namespace, selector={"labelSelector": "kubefoundry.ai/managed-by=kubefoundry"}
        )
        assert owner_uids(*objects) <= {uid}


@EVERY
async def test_deletion_waits_for_objects_of_a_forced_removal(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    first = await create_model(api, namespace, GPU, provider)
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    await hold(api, kind, namespace)
    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=first["metadata"]["uid"])
    suite.plane.kubectl(
        "patch",
        "modeldeployment",
        "m",
        "-n",
        namespace,
        "--type=merge",
        "-p",
        '{"metadata":{"finalizers":[]}}',
    )
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)

    second = await create_model(api, namespace, GPU, provider)

    waiting = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "WaitingForCleanup"
    )
    assert phase(waiting) == "Pending"
    await let_go(api, kind, namespace)
    uid = second["metadata"]["uid"]
    await until(api, kind, "m", namespace, lambda obj: obj is not None and owner_uids(obj) == {uid})
    await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated"
    )


@EVERY
async def test_stopped_provider_is_waited_for(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    made = await create_model(api, namespace, GPU, provider)
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")

    with stopped(suite.components[provider]):
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

        left = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
        assert left["metadata"]["finalizers"] == [f"kubefoundry.ai/{provider}-provider"]

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    await until(api, UPSTREAM[provider], "m", namespace, lambda obj: obj is None)


@EVERY
async def test_orphaning_leaves_the_upstream_object_as_it_is(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    made = await create_model(api, namespace, GPU, provider)
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    before = await api.get(kind, "m", namespace)

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"], propagation="Orphan")

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    after = await api.get(kind, "m", namespace)
    assert "deletionTimestamp" not in after["metadata"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert "ownerReferences" not in after["metadata"]
    assert {key: after[key] for key in after if key != "metadata"} == {
        key: before[key] for key in before if key != "metadata"
    }


def has_come_to(awaited: str) -> Callable[[Object], bool]:
    order = ("Pending", "Deploying", "Running")
    return lambda obj: order.index(phase(obj) or "Pending") >= order.index(awaited)


def owner_uids(*objects: Object) -> set[str]:
    return {owner["uid"] for obj in objects for owner in obj["metadata"].get("ownerReferences", ())}


@pytest.mark.parametrize("engine", ["vllm", "sglang"], ids=["it served", "nothing was made"])
async def test_deletion_names_the_finalizers_of_others(
    suite: Suite, api: Client, namespace: str, engine: str
) -> None:
    spec = {**GPU, "engine": {"type": engine}}
    body = model_deployment("m", namespace, spec, provider="kuberay", finalizers=["example.com/held"])
    made = await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) in ("Running", "Failed"))

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (
            phase(obj) == "Terminating"
            and obj["status"]["message"] == "Waiting for finalizers: example.com/held"
            and obj["metadata"]["finalizers"] == ["example.com/held"]
        ),
    )
    await until(api, UPSTREAM["kuberay"], "m", namespace, lambda obj: obj is None)
    gone = [{"op": "remove", "path": "/metadata/finalizers"}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, gone, manager="test")
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
