"""Somebody removes owner, labels and annotations, so that nothing on an upstream object shows whose it is."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, DEPLOYMENTS, MODEL_DEPLOYMENTS, SERVICES, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog, until_logged
from support.deployments import CPU, GPU, model_deployment
from support.edits import running
from support.events import notes, until_event
from support.kinds import UPSTREAM
from support.mutating_policies import Mutation, mutating, patch
from support.restarts import stopped
from support.waiting import message, phase, reason, serves, until, until_deployment

pytestmark = pytest.mark.integration

KINDS = {**UPSTREAM, "direct": DEPLOYMENTS}
EVERY = pytest.mark.parametrize("provider", KINDS)
MARKS = ("ownerReferences", "labels", "annotations")


async def created(api: Client, namespace: str, provider: str) -> Object:
    spec = CPU if provider == "direct" else GPU
    body = model_deployment("m", namespace, spec, provider=provider)
    made = await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, is_created)
    return made


def is_created(obj: Object) -> bool:
    return reason(obj, "ResourceCreated") == "ResourceCreated" and "provider" in obj["status"]


async def stripped(api: Client, namespace: str, kind: Kind, name: str = "m") -> Object:
    """The object without owner, labels and annotations."""
    operations = [{"op": "remove", "path": f"/metadata/{part}"} for part in MARKS]
    return await api.json_patch(kind, name, namespace, operations, manager="kubectl-patch")


def is_marked(obj: Object | None, uid: str) -> bool:
    meta = (obj or {}).get("metadata") or {}
    return (
        [owner["uid"] for owner in meta.get("ownerReferences") or ()] == [uid]
        and meta["annotations"].get(names.OWNER_UID_ANNOTATION) == uid
        and meta["labels"].get(names.MANAGED_BY_LABEL) == names.MANAGED_BY
    )


@EVERY
async def test_known_object_gets_its_marks_back(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    made = await created(api, namespace, provider)

    before = await stripped(api, namespace, KINDS[provider])

    after = await until(
        api, KINDS[provider], "m", namespace, lambda obj: is_marked(obj, made["metadata"]["uid"])
    )
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert "modified directly" in await until_event(api, namespace, "DriftDetected")
    model = await until_deployment(api, "m", namespace, is_created)
    assert phase(model) != "Failed"


async def other_owner(api: Client, namespace: str, *, controller: bool) -> Object:
    """Create an object, and return an owner reference to it."""
    metadata = {"name": "other", "namespace": namespace}
    other = await api.create(
        CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, manager="test"
    )
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other["metadata"]["uid"]}
    return {**reference, "controller": True} if controller else reference


def controllers(obj: Object | None) -> dict[str, bool]:
    """Return for the uid of each owner whether it is the controller."""
    owners = ((obj or {}).get("metadata") or {}).get("ownerReferences") or ()
    return {owner["uid"]: bool(owner.get("controller")) for owner in owners}


@EVERY
async def test_object_is_repaired_beside_another_controller(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    """The API server allows one owner with `controller: true`."""
    kind, made = KINDS[provider], await created(api, namespace, provider)
    uid = made["metadata"]["uid"]
    other = await other_owner(api, namespace, controller=True)

    forged = [{"op": "replace", "path": "/metadata/ownerReferences", "value": [other]}]
    before = await api.json_patch(kind, "m", namespace, forged, manager="kubectl-patch")

    repaired = await until(
        api, kind, "m", namespace, lambda obj: controllers(obj) == {other["uid"]: True, uid: False}
    )
    assert repaired is not None
    assert repaired["metadata"]["uid"] == before["metadata"]["uid"]
    assert "metadata.ownerReferences" in await until_event(api, namespace, "DriftDetected")

    # Later changes are reverted, too.
    path = f"/metadata/annotations/{names.OWNER_UID_ANNOTATION.replace('/', '~1')}"
    await api.json_patch(kind, "m", namespace, [{"op": "remove", "path": path}], manager="kubectl-patch")
    again = await until(
        api,
        kind,
        "m",
        namespace,
        lambda obj: obj and obj["metadata"]["annotations"].get(names.OWNER_UID_ANNOTATION) == uid,
    )
    assert again is not None
    assert controllers(again) == {other["uid"]: True, uid: False}
    model = await until_deployment(api, "m", namespace, is_created)
    assert "admission" not in message(model, "ResourceCreated")

    # Without the other controller, ours is the controller again.
    left = [owner for owner in again["metadata"]["ownerReferences"] if owner["uid"] == uid]
    await api.json_patch(
        kind,
        "m",
        namespace,
        [{"op": "replace", "path": "/metadata/ownerReferences", "value": left}],
        manager="kubectl-patch",
    )
    assert await until(api, kind, "m", namespace, lambda obj: controllers(obj) == {uid: True})


async def test_known_helper_gets_its_marks_back(suite: Suite, api: Client, namespace: str) -> None:
    made = await created(api, namespace, "direct")

    before = await stripped(api, namespace, SERVICES, "m-server")

    after = await until(
        api, SERVICES, "m-server", namespace, lambda obj: is_marked(obj, made["metadata"]["uid"])
    )
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert "Service 'm-server'" in await until_event(api, namespace, "DriftDetected")


@EVERY
async def test_unknown_object_is_named_before_it_is_left(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    """After a restart nothing proves that it is ours: anybody may use the provider's field manager."""
    kind = KINDS[provider]
    made = await created(api, namespace, provider)
    uid = made["metadata"]["uid"]
    with stopped(suite.components[provider]):
        await stripped(api, namespace, kind)

    refused = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "NameConflict"
    )
    assert message(refused, "ResourceCreated") == (
        f"{kind.kind} 'm' exists, and its owner, labels and annotations do not show that it was created for this "
        "ModelDeployment, so it is left unchanged: delete it, choose another name, or, if it is this model's, give "
        f"it the annotation {names.OWNER_UID_ANNOTATION}={uid}"
    )

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=uid)

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    note = await until_event(api, namespace, "ObjectLeft")
    assert note == (
        f"{kind.kind} {namespace}/m stays: nothing on it shows that it was created for this ModelDeployment; delete "
        "it unless somebody else uses it"
    )
    left = await api.get(kind, "m", namespace)
    await api.delete(kind, "m", namespace, uid=left["metadata"]["uid"])


async def test_unlabelled_object_with_another_owner_is_named(
    suite: Suite, api: Client, namespace: str
) -> None:
    """Without labels the provider does not see it, and the garbage collector keeps an object with another owner."""
    made = await created(api, namespace, "direct")
    other = await other_owner(api, namespace, controller=False)
    edit: list[dict[str, Any]] = [
        {"op": "remove", "path": "/metadata/labels"},
        {"op": "add", "path": "/metadata/ownerReferences/-", "value": other},
    ]
    with stopped(suite.components["direct"]):
        await api.json_patch(DEPLOYMENTS, "m", namespace, edit, manager="kubectl-patch")
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    assert await until_event(api, namespace, "ObjectLeft") == (
        f"Deployment {namespace}/m stays: it has lost the labels by which the provider finds it, and it has another "
        "owner, ConfigMap 'other'; delete it unless somebody else uses it"
    )
    left = await api.get(DEPLOYMENTS, "m", namespace)
    assert "deletionTimestamp" not in left["metadata"]


OWNERLESS = Mutation(
    "nvidia.com",
    "dynamographdeployments",
    patch("remove", "/metadata/ownerReferences", when="has(object.metadata.ownerReferences)"),
)


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_ownerless_object_is_named_before_it_is_left(suite: Suite, api: Client, namespace: str) -> None:
    async with mutating(api, namespace, [OWNERLESS]):
        body = model_deployment("m", namespace, GPU, provider="dynamo")
        made = await api.create(MODEL_DEPLOYMENTS, body, manager="test")
        await until_deployment(
            api,
            "m",
            namespace,
            lambda obj: "the owner reference was not stored" in message(obj, "ResourceCreated"),
        )

        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

        await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
        note = await until_event(api, namespace, "ObjectLeft")
        assert note.startswith(
            f"DynamoGraphDeployment {namespace}/m stays: it has no owner reference to this ModelDeployment"
        )
    left = await api.get(KINDS["dynamo"], "m", namespace)
    await api.delete(KINDS["dynamo"], "m", namespace, uid=left["metadata"]["uid"])


@EVERY
async def test_annotation_gives_an_unknown_object_back(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = KINDS[provider]
    made = await created(api, namespace, provider)
    uid = made["metadata"]["uid"]
    with stopped(suite.components[provider]):
        await stripped(api, namespace, kind)
    await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "NameConflict")

    value = {names.OWNER_UID_ANNOTATION: uid}
    await api.json_patch(
        kind,
        "m",
        namespace,
        [{"op": "add", "path": "/metadata/annotations", "value": value}],
        manager="kubectl-annotate",
    )

    # A kind of Kubernetes' own is watched by labels, so nothing shows the annotation: it is tried again.
    after = await until(api, kind, "m", namespace, lambda obj: is_marked(obj, uid))
    assert after is not None
    await until_deployment(api, "m", namespace, is_created)


async def test_replaced_helper_is_not_looked_for(suite: Suite, api: Client, namespace: str) -> None:
    """An edit gives KAITO a new ConfigMap. The provider has deleted the old one itself."""
    before = await running(api, namespace, GPU, "kaito")
    edit = [{"op": "add", "path": "/spec/engine/args", "value": {"max-num-seqs": "64"}}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, edit, manager="test")
    generation = before["metadata"]["generation"] + 1
    edited = await until_deployment(
        api, "m", namespace, lambda obj: serves(obj) and obj["status"]["observedGeneration"] == generation
    )
    log = AuditLog(suite)

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=edited["metadata"]["uid"])
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)

    # The removal of the finalizer is the last request, so all others are logged before it.
    requests = await until_logged(
        lambda: log.requests("provider-kaito", namespace, "modeldeployments"),
        lambda logged: any(
            entry["verb"] == "patch" and "subresource" not in entry["objectRef"] for entry in logged
        ),
    )
    assert requests
    assert [entry["verb"] for entry in log.requests("provider-kaito", namespace, "configmaps")] == ["delete"]


async def test_deletion_of_a_foreign_object_is_no_loss(suite: Suite, api: Client, namespace: str) -> None:
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "m", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "example.com/c:1"}]},
            },
        },
    }
    await api.create(DEPLOYMENTS, body, manager="somebody")
    model = model_deployment("m", namespace, CPU, provider="direct")
    made = await api.create(MODEL_DEPLOYMENTS, model, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "NameConflict")

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    assert await notes(api, namespace, "ObjectLeft") == []
