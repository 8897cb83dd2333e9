"""Core creates the claims of `claimTemplate` before the provider writes, and never takes over another claim."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import pytest

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import CLAIMS, DEPLOYMENTS, MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.audit import AuditLog
from support.deployments import CPU, GPU, model_deployment
from support.events import until_event
from support.kinds import QUOTAS, UPSTREAM
from support.roles import claims_permitted, until_allowed
from support.tenant import deployments_available
from support.waiting import SECONDS, message, phase, reason, serves, until, until_deployment
from support.wishes import annotate, change_spec

pytestmark = pytest.mark.integration

OVERLAY: Final = str(ROOT / "manifests" / "claims")
NAME: Final = "m-weights"
TEMPLATE: Final = {"size": "1Gi"}
CLAIM: Final[Object] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
RELEASED: Final = [{"op": "remove", "path": "/metadata/finalizers"}]
VOLUMES: Final = "/spec/model/storage/volumes"


@pytest.fixture(scope="module")
def permitted(suite: Suite) -> Iterator[None]:
    with claims_permitted(suite.plane):
        yield


def volumes(template: dict[str, Any], name: str = "weights") -> list[dict[str, Any]]:
    return [{"name": name, "purpose": "modelCache", "claimTemplate": template}]


async def created(api: Client, namespace: str, template: dict[str, Any], **metadata: Any) -> Object:
    """Create ModelDeployment `m` of provider direct with one claim, and return it."""
    spec = {**CPU, "model": {**CPU["model"], "storage": {"volumes": volumes(template)}}}
    body = model_deployment("m", namespace, spec, provider="direct", **metadata)
    return await api.create(MODEL_DEPLOYMENTS, body, manager="test")


async def deleted(api: Client, namespace: str, model: Object) -> None:
    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=model["metadata"]["uid"])
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)


async def until_validated(api: Client, namespace: str, expected: str = "ValidationPassed") -> Object:
    def holds(obj: Object) -> bool:
        generations = [
            item.get("observedGeneration")
            for item in (obj.get("status") or {}).get("conditions") or ()
            if item["type"] == "Validated"
        ]
        return reason(obj, "Validated") == expected and generations == [obj["metadata"]["generation"]]

    return await until_deployment(api, "m", namespace, holds)


async def is_missing(api: Client, kind: Kind, name: str, namespace: str) -> bool:
    try:
        await api.get(kind, name, namespace)
    except ApiError as error:
        return error.not_found
    return False


async def quota(api: Client, namespace: str, storage: str) -> Object:
    """Create a ResourceQuota, with its status instead of the controller that does not run here, and await it."""
    head = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": namespace}}
    hard = {"requests.storage": storage}
    await api.create(QUOTAS, {**head, "spec": {"hard": hard}}, manager="test")
    status = {"hard": hard, "used": {"requests.storage": "0"}}
    made = await api.apply_status(QUOTAS, {**head, "status": status}, manager="test")
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                body = {**CLAIM, "metadata": {"name": "x", "namespace": namespace}}
                await api.create(CLAIMS, body, manager="test", dry_run=True)
            except ApiError as error:
                assert "exceeded quota" in error.message
                return made
            await asyncio.sleep(PROBE)


def allow_deletion(suite: Suite, namespace: str) -> None:
    """Let core delete claims of the namespace."""
    rule = ("--verb=delete", "--resource=persistentvolumeclaims", f"--namespace={namespace}")
    suite.plane.kubectl("create", "role", "deleter", *rule)
    account = "--serviceaccount=kubefoundry-system:kubefoundry-core"
    suite.plane.kubectl(
        "create", "rolebinding", "deleter", "--role=deleter", account, f"--namespace={namespace}"
    )
    until_allowed(suite.plane, "core", "delete", "persistentvolumeclaims", allowed=True, namespace=namespace)


async def test_claim_is_created_before_the_provider_writes(
    suite: Suite, api: Client, namespace: str, permitted: None
) -> None:
    log = AuditLog(suite)
    model = await created(api, namespace, TEMPLATE)

    deployment = await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None)
    claim = await api.get(CLAIMS, NAME, namespace)
    note = await until_event(api, namespace, "ClaimCreated")

    assert deployment is not None
    assert deployment["metadata"]["creationTimestamp"] >= claim["metadata"]["creationTimestamp"]
    pod = deployment["spec"]["template"]["spec"]
    assert {"name": "weights", "persistentVolumeClaim": {"claimName": NAME}} in pod["volumes"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert claim["spec"]["resources"]["requests"] == {"storage": "1Gi"}
    assert claim["metadata"]["labels"] == {names.MODEL_LABEL: "m"}
    assert claim["metadata"]["annotations"] == {
        names.CLAIM_OF_ANNOTATION: "m/weights",
        names.CLAIM_OF_UID_ANNOTATION: model["metadata"]["uid"],
    }
    assert "ownerReferences" not in claim["metadata"]
    assert note == f"PersistentVolumeClaim {NAME} created (1Gi, ReadWriteOnce, the default StorageClass)"
    verbs = [entry["verb"] for entry in log.requests("core", namespace, "persistentvolumeclaims")]
    assert verbs == ["get", "create"]


async def test_deleted_claim_has_the_model_as_owner(api: Client, namespace: str, permitted: None) -> None:
    model = await created(
        api, namespace, {**TEMPLATE, "whenDeleted": "Delete", "accessMode": "ReadWriteMany"}
    )

    await until_validated(api, namespace)

    claim = await api.get(CLAIMS, NAME, namespace)
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert claim["metadata"]["ownerReferences"] == [
        {
            "apiVersion": names.API_VERSION,
            "kind": names.MODEL_DEPLOYMENT,
            "name": "m",
            "uid": model["metadata"]["uid"],
        }
    ]


@pytest.mark.parametrize("may_delete", [False, True])
async def test_claim_owner_changes_only_if_core_may_delete_claims(
    suite: Suite, api: Client, namespace: str, permitted: None, may_delete: bool
) -> None:
    """The API server of these tests runs the admission plugin OwnerReferencesPermissionEnforcement."""
    await created(api, namespace, TEMPLATE)
    await until_validated(api, namespace)
    if may_delete:
        allow_deletion(suite, namespace)

    await change_spec(api, namespace, VOLUMES, volumes({**TEMPLATE, "whenDeleted": "Delete"}))
    now = await until_validated(api, namespace, "ValidationPassed" if may_delete else "ClaimNotReady")
    owned = await api.get(CLAIMS, NAME, namespace)
    await change_spec(api, namespace, VOLUMES, volumes(TEMPLATE))
    await until_validated(api, namespace)
    free = await api.get(CLAIMS, NAME, namespace)

    assert ("ownerReferences" in owned["metadata"]) == may_delete
    assert "ownerReferences" not in free["metadata"]
    assert may_delete or message(now, "Validated") == (
        f"volume weights of model.storage: PersistentVolumeClaim {NAME} cannot follow the change of whenDeleted, so "
        f'set whenDeleted to Retain again. The API server answers: persistentvolumeclaims "{NAME}" is forbidden: '
        "cannot set an ownerRef on a resource you can't delete: , <nil>"
    )


async def test_retained_claim_is_used_again(api: Client, namespace: str, permitted: None) -> None:
    model = await created(api, namespace, TEMPLATE)
    await until_validated(api, namespace)
    before = await api.get(CLAIMS, NAME, namespace)
    await deleted(api, namespace, model)

    again = await created(api, namespace, {"size": "512Mi"})
    await until_validated(api, namespace)

    claim = await api.get(CLAIMS, NAME, namespace)
    note = await until_event(api, namespace, "ClaimReused")
    assert claim["spec"] == before["spec"]
    assert claim["metadata"]["uid"] == before["metadata"]["uid"]
    assert claim["metadata"]["annotations"][names.CLAIM_OF_UID_ANNOTATION] == again["metadata"]["uid"]
    assert note == f"PersistentVolumeClaim {NAME} of an earlier ModelDeployment of this name is used again"


async def test_deletion_of_a_model_keeps_the_reason_of_its_claim(
    api: Client, namespace: str, permitted: None
) -> None:
    await api.create(CLAIMS, {**CLAIM, "metadata": {"name": NAME, "namespace": namespace}}, manager="test")
    model = await created(api, namespace, TEMPLATE, finalizers=["example.com/hold"])
    before = await until_validated(api, namespace, "ClaimNotReady")

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=model["metadata"]["uid"])

    after = await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Terminating")
    assert reason(after, "Validated") == "ClaimNotReady"
    assert message(after, "Validated") == message(before, "Validated")
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, RELEASED, manager="test")


async def test_claim_stays_when_another_provider_takes_over(
    api: Client, namespace: str, permitted: None
) -> None:
    storage = {"volumes": volumes({**TEMPLATE, "whenDeleted": "Delete"})}
    spec = {**GPU, "model": {**GPU["model"], "storage": storage}}
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, spec, provider="direct"), manager="test"
    )
    await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None)
    before = await api.get(CLAIMS, NAME, namespace)

    await change_spec(api, namespace, "/spec/provider/name", "kuberay")
    service = await until(api, UPSTREAM["kuberay"], "m", namespace, lambda obj: obj is not None)
    await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is None)

    assert service is not None
    pod = service["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["template"]["spec"]
    assert {"name": "weights", "persistentVolumeClaim": {"claimName": NAME}} in pod["volumes"]
    assert await api.get(CLAIMS, NAME, namespace) == before


async def test_claim_of_somebody_else_is_left_as_it_is(api: Client, namespace: str, permitted: None) -> None:
    body = {**CLAIM, "metadata": {"name": NAME, "namespace": namespace}}
    before = await api.create(CLAIMS, body, manager="test")

    await created(api, namespace, {**TEMPLATE, "whenDeleted": "Delete"})
    refused = await until_validated(api, namespace, "ClaimNotReady")

    assert message(refused, "Validated") == (
        f"volume weights of model.storage: PersistentVolumeClaim {NAME} exists and was not created for this volume: "
        "set claimName instead of claimTemplate to use it, or rename the volume"
    )
    assert await api.get(CLAIMS, NAME, namespace) == before
    assert await is_missing(api, DEPLOYMENTS, "m", namespace)

    await change_spec(
        api, namespace, VOLUMES, [{"name": "weights", "purpose": "modelCache", "claimName": NAME}]
    )
    await until_validated(api, namespace)
    await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None)
    assert await api.get(CLAIMS, NAME, namespace) == before


async def test_exceeded_quota_is_reported_until_there_is_room(
    api: Client, namespace: str, permitted: None
) -> None:
    made = await quota(api, namespace, "512Mi")

    await created(api, namespace, TEMPLATE)
    refused = await until_validated(api, namespace, "ClaimNotReady")
    await api.delete(QUOTAS, "q", namespace, uid=made["metadata"]["uid"])

    assert message(refused, "Validated").startswith(
        f"volume weights of model.storage: PersistentVolumeClaim {NAME} cannot be created. The API server answers: "
    )
    assert "exceeded quota: q" in message(refused, "Validated")
    await until_validated(api, namespace)
    await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None)


async def test_refused_enlargement_keeps_the_model(api: Client, namespace: str, permitted: None) -> None:
    await created(api, namespace, TEMPLATE)
    await until_validated(api, namespace)

    await change_spec(api, namespace, VOLUMES, volumes({"size": "2Gi"}))
    refused = await until_validated(api, namespace, "ClaimNotReady")

    assert message(refused, "Validated").startswith(
        f"volume weights of model.storage: PersistentVolumeClaim {NAME} cannot be enlarged from 1Gi to 2Gi, so set "
        "size to 1Gi, or rename the volume for a new claim. The API server answers: "
    )
    assert not await is_missing(api, DEPLOYMENTS, "m", namespace)
    await change_spec(api, namespace, VOLUMES, volumes({"size": "1024Mi"}))
    await until_validated(api, namespace)


async def test_paused_model_gets_its_claim_at_the_end_of_the_pause(
    api: Client, namespace: str, permitted: None
) -> None:
    await created(api, namespace, TEMPLATE, annotations={names.PAUSED_ANNOTATION: "true"})

    paused = await until_validated(api, namespace, "ClaimNotReady")
    assert paused["status"]["message"] == names.PAUSED_MESSAGE
    assert await is_missing(api, CLAIMS, NAME, namespace)

    await annotate(api, namespace, names.PAUSED_ANNOTATION, None)
    await until_validated(api, namespace)
    assert not await is_missing(api, CLAIMS, NAME, namespace)


async def test_dry_run_creates_no_claim(api: Client, namespace: str, permitted: None) -> None:
    await created(api, namespace, TEMPLATE, annotations={names.DRY_RUN_ANNOTATION: "true"})

    await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "DryRun")
    note = await until_event(api, namespace, "ClaimDryRun")
    assert (
        note
        == f"PersistentVolumeClaim {NAME} would be created (1Gi, ReadWriteOnce, the default StorageClass)"
    )
    assert await is_missing(api, CLAIMS, NAME, namespace)

    await annotate(api, namespace, names.DRY_RUN_ANNOTATION, None)
    await until(api, CLAIMS, NAME, namespace, lambda obj: obj is not None)
    await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None)


async def test_missing_claim_is_recreated_for_a_stopped_model(
    api: Client, namespace: str, permitted: None
) -> None:
    await created(api, namespace, TEMPLATE)
    await until_validated(api, namespace)
    before = await api.get(CLAIMS, NAME, namespace)
    await api.delete(CLAIMS, NAME, namespace, uid=before["metadata"]["uid"])
    await api.json_patch(CLAIMS, NAME, namespace, RELEASED, manager="test")

    await annotate(api, namespace, "example.com/touched", "1")

    await until(
        api, CLAIMS, NAME, namespace, lambda obj: obj and obj["metadata"]["uid"] != before["metadata"]["uid"]
    )


async def test_deleted_mounted_claim_lets_the_model_scale_to_zero(
    suite: Suite, api: Client, namespace: str, permitted: None
) -> None:
    async with deployments_available(api, namespace):
        await created(api, namespace, TEMPLATE)
        await until_deployment(api, "m", namespace, serves)
        before = await api.get(CLAIMS, NAME, namespace)

        await change_spec(api, namespace, VOLUMES, volumes({**TEMPLATE, "storageClassName": "fast"}))
        refused = await until_validated(api, namespace, "ClaimNotReady")
        await api.delete(CLAIMS, NAME, namespace, uid=before["metadata"]["uid"])
        await until_validated(api, namespace)
        suite.components["core"].stop()
        suite.start("core")
        await change_spec(api, namespace, "/spec/scaling", {"replicas": 0})
        await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj and obj["spec"]["replicas"] == 0)
        note = await until_event(api, namespace, "ClaimTerminating")
        await api.json_patch(CLAIMS, NAME, namespace, RELEASED, manager="test")

        again = await until(
            api,
            CLAIMS,
            NAME,
            namespace,
            lambda obj: obj and obj["metadata"]["uid"] != before["metadata"]["uid"],
        )
        await change_spec(api, namespace, "/spec/scaling", {"replicas": 1})
        await until_deployment(api, "m", namespace, serves)

    assert message(refused, "Validated").endswith(
        "or delete the claim with its files, and set scaling.replicas to 0 until it is created again"
    )
    assert note == (
        f"PersistentVolumeClaim {NAME} is being deleted, and goes with the last pod that mounts it. Set "
        "scaling.replicas to 0 until the Event ClaimCreated reports a new, empty one"
    )
    assert again is not None and again["spec"]["storageClassName"] == "fast"


async def test_lacking_permission_is_reported_with_a_remedy(
    suite: Suite, api: Client, namespace: str, permitted: None
) -> None:
    suite.plane.kubectl("delete", "-k", OVERLAY)
    until_allowed(suite.plane, "core", "get", "persistentvolumeclaims", allowed=False)
    try:
        await created(api, namespace, TEMPLATE)
        refused = await until_validated(api, namespace, "ClaimNotReady")
    finally:
        suite.plane.kubectl("apply", "-k", OVERLAY)

    assert message(refused, "Validated") == (
        f"volume weights of model.storage: PersistentVolumeClaim {NAME}: kubefoundry-core may not create "
        "PersistentVolumeClaims: ask an administrator to apply manifests/claims (storageClaims.enabled in the "
        "chart), or create the claim yourself and name it in claimName. The API server answers: "
        f'persistentvolumeclaims "{NAME}" is forbidden: User '
        '"system:serviceaccount:kubefoundry-system:kubefoundry-core" cannot get resource "persistentvolumeclaims" in '
        f'API group "" in the namespace "{namespace}"'
    )
    assert await is_missing(api, DEPLOYMENTS, "m", namespace)
