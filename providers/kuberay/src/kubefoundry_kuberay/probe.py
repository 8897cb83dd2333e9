"""The installed RayService CRD: whether it has what is rendered here (sources §3.1).

`v1` is served and stored by every KubeRay from 1.1 to 1.7. Of the fields that later releases added only
`spec.suspend` is written, so it is the only feature.
"""

from __future__ import annotations

from typing import Any, Final

from kubefoundry_sdk import Object, Schema, UnsupportedSchema

API_VERSION: Final = "ray.io/v1"

SUSPEND: Final = "suspend"
"""Feature: `spec.suspend`, from KubeRay 1.7 on."""

TO_ZERO: Final = "scaling to 0 replicas"
"""Lost without it (`supports`)."""

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
"""Fields that every render writes; list items are passed over."""


def probe(crd: Object) -> Schema | UnsupportedSchema:
    """The schema of the served version `v1`, or what it lacks."""
    for version in crd["spec"]["versions"]:
        if version["name"] == "v1" and version.get("served"):
            schema = version.get("schema", {}).get("openAPIV3Schema", {})
            missing = tuple(path for path in NEEDED if not _has(schema, path))
            if missing:
                return UnsupportedSchema(missing)
            if _has(schema, "spec.suspend"):
                return Schema(API_VERSION, frozenset({SUSPEND}))
            return Schema(API_VERSION, lost=(TO_ZERO,))
    return UnsupportedSchema((API_VERSION,))


def _has(schema: dict[str, Any], path: str) -> bool:
    for step in path.split("."):
        schema = schema.get("items", schema).get("properties", {}).get(step)
        if schema is None:
            return False
    return True
