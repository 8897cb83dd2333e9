"""Another release of an upstream CRD in place of the installed one, as its operator's upgrade brings it."""

from __future__ import annotations

import copy
from typing import Any

from kubefoundry_sdk.api.kinds import CRDS
from kubefoundry_sdk.cluster.client import Client
from support.upstream import standin

Schema = dict[str, Any]

FREE: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXT: Schema = {"type": "string"}


async def upgrade(api: Client, document: dict[str, Any]) -> None:
    """Replaces the whole spec: merged by an apply, a webhook would keep the address of the release before."""
    replacement = [{"op": "replace", "path": "/spec", "value": document["spec"]}]
    await api.json_patch(CRDS, document["metadata"]["name"], None, replacement, manager="upgrade")


def bare(document: dict[str, Any]) -> dict[str, Any]:
    """A CRD of the same name and versions that would store anything and declares nothing but its status."""
    made = copy.deepcopy(document)
    for version in made["spec"]["versions"]:
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
        version["schema"]["openAPIV3Schema"] = {**FREE, "properties": {"status": status}}
    return made


def dynamo_stored_as_v1beta1() -> dict[str, Any]:
    """The stand-in with the version that Dynamo 1.5 stores, in the shape of a list, beside the one that it had.

    Its operator's webhook converts; where that is, the operator says when it finds the CRD.
    """
    made = copy.deepcopy(standin("dynamo").document)
    [before] = made["spec"]["versions"]
    before["storage"] = False
    status = copy.deepcopy(before["schema"]["openAPIV3Schema"]["properties"]["status"])
    status["properties"]["components"] = status["properties"].pop("services")
    component = _object(
        name=TEXT,
        type=TEXT,
        replicas={"type": "integer", "format": "int32", "minimum": 0},
        podTemplate=_object(
            metadata=FREE, spec={**FREE, "properties": {"containers": {"type": "array", "items": FREE}}}
        ),
    )
    components: Schema = {
        "type": "array",
        "items": {**component, "required": ["name"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    made["spec"]["versions"].append(
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
    nowhere = {"namespace": "dynamo-system", "name": "dynamo-operator-webhook-service", "path": "/convert"}
    made["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"service": nowhere}, "conversionReviewVersions": ["v1"]},
    }
    return made


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}
