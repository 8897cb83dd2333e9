"""Checks whether the installed RayService CRD has the fields that we render (sources §3.1).

Every KubeRay from 1.1 to 1.7 serves and stores `v1`. The features are the fields of later releases that we write.
"""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk import Object, Schema, UnsupportedSchema
from kubefoundry_sdk.crd import Fields, by_fields

SUSPEND: Final = "suspend"
"""Feature: `spec.suspend`, from KubeRay 1.7 on."""

TO_ZERO: Final = "scaling to 0 replicas"
"""The setting that is lost without `spec.suspend` (`supports`)."""

_CLUSTER: Final = "spec.rayClusterConfig"
NEEDED: Final = (
    "spec.serveConfigV2",
    f"{_CLUSTER}.rayVersion",
    f"{_CLUSTER}.enableInTreeAutoscaling",
    f"{_CLUSTER}.headGroupSpec.rayStartParams",
    f"{_CLUSTER}.headGroupSpec.template",
    *(
        f"{_CLUSTER}.workerGroupSpecs.{field}"
        for field in ("groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template")
    ),
)
"""Fields that every render writes; list items are not checked."""


IMAGE_VOLUMES: Final = "image volumes"
CLAIMS: Final = "resource claims"
"""Features: fields of pods of Kubernetes 1.31, which KubeRay 1.1 lacks and 1.3 has."""

_POD: Final = f"{_CLUSTER}.workerGroupSpecs.template.spec"
OPTIONAL: Final = {
    SUSPEND: "spec.suspend",
    IMAGE_VOLUMES: f"{_POD}.volumes.image",
    CLAIMS: f"{_POD}.resourceClaims.resourceClaimName",
}

LOST: Final = {
    SUSPEND: TO_ZERO,
    IMAGE_VOLUMES: "images in model.storage.volumes or podTemplate.spec.volumes",
    CLAIMS: "podTemplate.spec.resourceClaims",
}

FIELDS: Final = Fields(NEEDED, optional=OPTIONAL, lost=LOST)


def probe(crd: Object) -> Schema | UnsupportedSchema:
    """Return the schema of the served version `v1`, or the fields that it lacks."""
    return by_fields({"v1": FIELDS}, crd)
