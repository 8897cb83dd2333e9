"""Determines the version and the fields of the installed DynamoGraphDeployment CRD (sources §2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kubefoundry_sdk import Object, Schema, UnsupportedSchema, UpstreamKind
from kubefoundry_sdk.crd import Fields, by_fields, served_version

UPSTREAM: Final = UpstreamKind("nvidia.com", "dynamographdeployments", "DynamoGraphDeployment")

KNOWN: Final = ("v1beta1", "v1alpha1")
"""Versions that we can write, the newest first."""

CLAIMS: Final = "claims"
"""Feature: devices of a container by dynamic resource allocation, from Dynamo 0.7 on."""

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "v1alpha1": (
        "spec.backendFramework",
        "spec.services{}.componentType",
        "spec.services{}.replicas",
        "spec.services{}.envFromSecret",
        "spec.services{}.envs",
        "spec.services{}.resources.limits.gpu",
        "spec.services{}.resources.limits.custom",
        "spec.services{}.extraPodMetadata",
        "spec.services{}.extraPodSpec.mainContainer",
    ),
    "v1beta1": (
        "spec.backendFramework",
        "spec.components[].name",
        "spec.components[].type",
        "spec.components[].replicas",
        "spec.components[].podTemplate.metadata",
        "spec.components[].podTemplate.spec.containers",
    ),
}
"""Fields that every write of a version needs."""

OPTIONAL: Final[Mapping[str, Mapping[str, str]]] = {
    "v1alpha1": {
        "subComponentType": "spec.services{}.subComponentType",
        "globalDynamoNamespace": "spec.services{}.globalDynamoNamespace",
        "gpuType": "spec.services{}.resources.limits.gpuType",
        "restart": "spec.restart",
        "observedGeneration": "status.observedGeneration",
        "annotations": "spec.annotations",
        "priorityClassName": "spec.priorityClassName",
        "runtimeVersionOverride": "spec.services{}.runtimeVersionOverride",
        CLAIMS: "spec.services{}.resources.claims",
    },
    "v1beta1": {
        "runtimeVersionOverride": "spec.components[].runtimeVersionOverride",
        CLAIMS: "spec.components[].podTemplate.spec.containers[].resources.claims",
    },
}
"""Features by name, with the field that shows each."""

LOST: Final = {CLAIMS: "podTemplate.container.resourceClaims"}


def probe(crd: Object) -> Schema | UnsupportedSchema:
    """Return how to write with this CRD: the storage version, if it is supported.

    Another served version may lose data (contract §4.10).
    """
    schema = by_fields({name: Fields(REQUIRED[name], OPTIONAL[name], LOST) for name in KNOWN}, crd)
    if isinstance(schema, Schema) and served_version(crd, {"v1beta1": None}) is not None:
        return replace(schema, features=schema.features | {"v1beta1"})
    return schema
