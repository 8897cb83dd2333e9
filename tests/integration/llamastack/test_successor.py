"""Tests that the existing operator's successor can adopt children, step by step as it does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from kubefoundry_llamastack import names
from kubefoundry_llamastack.names import CLAIMS, DEPLOYMENTS, LLSD, OGX_SERVERS, SERVICES
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.client import Client
from support.llamastack import condition_of, deployment, edit, llsd, reason, until_object, until_status

pytestmark = pytest.mark.integration

CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": OGX_SERVERS.crd},
    "spec": {
        "group": OGX_SERVERS.group,
        "scope": "Namespaced",
        "names": {"plural": OGX_SERVERS.plural, "kind": OGX_SERVERS.kind},
        "versions": [
            {
                "name": OGX_SERVERS.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}
"""A stand-in: only the annotations matter."""


def server(namespace: str) -> Object:
    meta: Object = {"name": "next", "namespace": namespace}
    meta["annotations"] = dict.fromkeys(names.ADOPTIONS, "old")
    return {"apiVersion": OGX_SERVERS.api_version, "kind": OGX_SERVERS.kind, "metadata": meta}


def stopped(generation: int) -> Callable[[Object], bool]:
    return lambda status: bool(condition_of(status, "SoleOperator").get("observedGeneration") == generation)


async def test_adoption_by_successor_is_left_alone(api: Client, idle: Suite) -> None:
    idle.start("llamastack")
    await api.create(LLSD, llsd("old", "default", storage={"size": "1Gi"}), manager="user")
    await deployment(api, "old", "default")
    idle.plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(CRD))
    idle.plane.wait_served(OGX_SERVERS.crd)

    adopter = await api.create(OGX_SERVERS, server("default"), manager="user")
    await until_status(api, "old", "default", stopped(1))
    idle.plane.kubectl("scale", "deployment/old", "--replicas=0")
    owner = {
        "apiVersion": OGX_SERVERS.api_version,
        "kind": OGX_SERVERS.kind,
        "name": "next",
        "uid": adopter["metadata"]["uid"],
        "controller": True,
    }

    def release(claim: Object) -> None:
        del claim["metadata"]["ownerReferences"]
        claim["metadata"]["labels"][names.ADOPTED_FROM] = "old"

    def redirect(service: Object) -> None:
        service["metadata"]["ownerReferences"] = [owner]
        service["metadata"]["labels"][names.ADOPTED_FROM] = "old"
        service["spec"]["selector"] = {"app": "ogx"}

    await edit(api, "old-pvc", "default", release, CLAIMS)
    await edit(api, "old-service", "default", redirect, SERVICES)
    # the next write of the operator comes after any that the edits could have led to
    await edit(api, "old", "default", lambda cr: cr["spec"].update(replicas=2))
    status = await until_status(api, "old", "default", stopped(2))
    left = await api.get(DEPLOYMENTS, "old", "default")
    service = await api.get(SERVICES, "old-service", "default")
    await api.delete(OGX_SERVERS, "next", "default", uid=adopter["metadata"]["uid"])
    await edit(api, "old", "default", lambda cr: cr["spec"].update(replicas=3))
    marked = await until_status(api, "old", "default", stopped(3))

    assert reason(status, "SoleOperator") == reason(marked, "SoleOperator") == "AdoptedBySuccessor"
    assert left["spec"]["replicas"] == 0
    assert service["spec"]["selector"] == {"app": "ogx"}
    assert status["phase"] != "Ready"


async def test_distribution_is_kept_when_adoption_is_withdrawn(api: Client, idle: Suite) -> None:
    idle.start("llamastack")
    idle.plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(CRD))
    idle.plane.wait_served(OGX_SERVERS.crd)
    await api.create(LLSD, llsd("old", "default"), manager="user")
    await deployment(api, "old", "default")
    await api.create(OGX_SERVERS, server("default"), manager="user")
    await until_status(api, "old", "default", stopped(1))
    idle.plane.kubectl("scale", "deployment/old", "--replicas=0")

    def withdraw(adopter: Object) -> None:
        del adopter["metadata"]["annotations"]

    await edit(api, "next", "default", withdraw, OGX_SERVERS)

    await until_object(api, DEPLOYMENTS, "old", "default", lambda obj: obj["spec"]["replicas"] == 1)
    await until_status(api, "old", "default", lambda status: not reason(status, "SoleOperator"))
