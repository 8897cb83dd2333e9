"""Replace an installed upstream CRD by another release, as an upgrade of its operator does."""

from __future__ import annotations

import copy
from typing import Any

from kubefoundry_sdk._api.kinds import CRDS
from kubefoundry_sdk._cluster.client import Client
from support.upstream import standin

Schema = dict[str, Any]

FREE: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXT: Schema = {"type": "string"}


async def upgrade(api: Client, document: dict[str, Any]) -> None:
    """Replace the whole spec. An apply would merge, and keep the address of the earlier release's webhook."""
    replacement = [{"op": "replace", "path": "/spec", "value": document["spec"]}]
    await api.json_patch(CRDS, document["metadata"]["name"], None, replacement, manager="upgrade")


def bare(document: dict[str, Any]) -> dict[str, Any]:
    """Return a CRD with the same name and versions that accepts any fields and declares only its status."""
    crd = copy.deepcopy(document)
    for version in crd["spec"]["versions"]:
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
        version["schema"]["openAPIV3Schema"] = {**FREE, "properties": {"status": status}}
    return crd


def dynamo_stored_as_v1beta1() -> dict[str, Any]:
    """Return the stand-in with a second version, v1beta1, which Dynamo 1.5 stores and which has a list of components.

    The operator's webhook converts. The operator writes its address when it finds the CRD.
    """
    crd = copy.deepcopy(standin("dynamo").document)
    [before] = crd["spec"]["versions"]
    before["storage"] = False
    status = copy.deepcopy(before["schema"]["openAPIV3Schema"]["properties"]["status"])
    status["properties"]["components"] = status["properties"].pop("services")
    claims = {"resources": {**FREE, "properties": {"claims": {"type": "array", "items": FREE}}}}
    containers = {"type": "array", "items": {**FREE, "properties": claims}}
    component = _object(
        name=TEXT,
        type=TEXT,
        replicas={"type": "integer", "format": "int32", "minimum": 0},
        podTemplate=_object(metadata=FREE, spec={**FREE, "properties": {"containers": containers}}),
    )
    components: Schema = {
        "type": "array",
        "items": {**component, "required": ["name"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    crd["spec"]["versions"].append(
        {
            "name": "v1beta1",
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "schema": {
                "openAPIV3Schema": _object(
                    spec=_object(backendFramework=TEXT, components=components), status=status
                )
            },
        }
    )
    service = {"namespace": "dynamo-system", "name": "dynamo-operator-webhook-service", "path": "/convert"}
    crd["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]},
    }
    return crd


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}
