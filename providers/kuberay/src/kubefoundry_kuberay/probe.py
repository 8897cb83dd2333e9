"""Checks whether the installed RayService CRD has the fields that we render (sources §3.1).

Every KubeRay from 1.1 to 1.7 serves and stores `v1`. Of the fields that later releases added we write only
`spec.suspend`, so it is the only feature.
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


FIELDS: Final = Fields(NEEDED, optional={SUSPEND: "spec.suspend"}, lost={SUSPEND: TO_ZERO})


def probe(crd: Object) -> Schema | UnsupportedSchema:
    """Return the schema of the served version `v1`, or the fields that it lacks."""
    return by_fields({"v1": FIELDS}, crd)
