"""Tests that children which lost their owner reference are repaired, and are updated again."""

from __future__ import annotations

import pytest
import yaml

from kubefoundry_llamastack.names import (
    ANYUID_ROLE,
    AUTOSCALERS,
    CLAIMS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    INGRESSES,
    LLSD,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support.llamastack import condition_of, deployment, edit, llsd, reason, until_object, until_status

pytestmark = pytest.mark.integration

WHOLE: Object = {
    "storage": {"size": "1Gi"},
    "podDisruptionBudget": {"maxUnavailable": 1},
    "autoscaling": {"maxReplicas": 3},
}
REPAIRED = [
    (DEPLOYMENTS, ""),
    (SERVICE_ACCOUNTS, "-sa"),
    (SERVICES, "-service"),
    (CONFIG_MAPS, "-applied"),
    (INGRESSES, "-ingress"),
    (AUTOSCALERS, "-hpa"),
    (DISRUPTION_BUDGETS, "-pdb"),
]


def disown(obj: Object) -> None:
    """Remove the owner as a restore from a backup does."""
    obj["metadata"].pop("ownerReferences", None)


def owners(obj: Object) -> list[str]:
    return [item["uid"] for item in obj["metadata"].get("ownerReferences") or ()]


@pytest.mark.parametrize(("kind", "suffix"), REPAIRED, ids=[kind.plural for kind, _ in REPAIRED])
async def test_lost_owner_is_restored(
    api: Client, stack: Suite, namespace: str, kind: Kind, suffix: str
) -> None:
    cr = await api.create(
        LLSD, llsd("own", namespace, {"network": {"exposeRoute": True}}, **WHOLE), manager="u"
    )
    await until_object(api, kind, f"own{suffix}", namespace)

    await edit(api, f"own{suffix}", namespace, disown, kind)

    live = await until_object(api, kind, f"own{suffix}", namespace, owners)
    assert owners(live) == [cr["metadata"]["uid"]]


async def test_claim_without_owner_is_kept_and_reported(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(LLSD, llsd("data", namespace, storage={"size": "1Gi"}), manager="user")
    await until_object(api, CLAIMS, "data-pvc", namespace)
    before = await deployment(api, "data", namespace)

    await edit(api, "data-pvc", namespace, disown, CLAIMS)
    status = await until_status(
        api, "data", namespace, lambda status: "WARNING" in str(condition_of(status, "StorageReady"))
    )
    await edit(api, "data", namespace, lambda cr: cr["spec"]["server"].update(workers=2))
    await until_object(
        api,
        DEPLOYMENTS,
        "data",
        namespace,
        lambda obj: obj["metadata"]["generation"] > before["metadata"]["generation"],
    )
    after = await until_status(
        api, "data", namespace, lambda status: condition_of(status, "StorageReady")["observedGeneration"] == 2
    )

    assert "'data-pvc' has lost its owner" in condition_of(status, "StorageReady")["message"]
    assert reason(after, "StorageReady") == "StoragePending"
    assert owners(await api.get(CLAIMS, "data-pvc", namespace)) == []


async def test_lost_owner_of_role_binding_is_restored(api: Client, idle: Suite) -> None:
    role: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": ANYUID_ROLE},
        "rules": [],
    }
    idle.plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(role))
    idle.plane.kubectl("apply", "-k", str(ROOT / "manifests" / "llamastack" / "openshift-anyuid"))
    idle.install("llamastack", environment={"KUBEFOUNDRY_OPENSHIFT_ANYUID": "true"})
    idle.start("llamastack")
    cr = await api.create(LLSD, llsd("bound", "default"), manager="user")
    await until_object(api, ROLE_BINDINGS, "bound-rb", "default")

    await edit(api, "bound-rb", "default", disown, ROLE_BINDINGS)

    live = await until_object(api, ROLE_BINDINGS, "bound-rb", "default", owners)
    assert owners(live) == [cr["metadata"]["uid"]]
