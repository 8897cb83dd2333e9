"""Which version of the DynamoGraphDeployment CRD is installed and what it has (sources §2.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubefoundry_sdk import Object, Schema, UnsupportedSchema, UpstreamKind

UPSTREAM: Final = UpstreamKind("nvidia.com", "dynamographdeployments", "DynamoGraphDeployment")

KNOWN: Final = ("v1beta1", "v1alpha1")
"""Versions with a transformer here, the newest first."""

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
"""Fields without which a version cannot be written."""

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
    },
    "v1beta1": {"runtimeVersionOverride": "spec.components[].runtimeVersionOverride"},
}
"""Features by name and the field that shows each."""


def probe(crd: Object) -> Schema | UnsupportedSchema:
    """The storage version where it is known here: another served one may lose data (contract §4.8)."""
    served = {version["name"]: version for version in crd["spec"]["versions"] if version.get("served")}
    stored = [name for name, version in served.items() if version.get("storage") and name in KNOWN]
    chosen = next(iter([*stored, *(name for name in KNOWN if name in served)]), None)
    if chosen is None:
        return UnsupportedSchema(tuple(f"{UPSTREAM.group}/{name}" for name in reversed(KNOWN)))
    schema = served[chosen].get("schema", {}).get("openAPIV3Schema", {})
    missing = tuple(path for path in REQUIRED[chosen] if not _has(schema, path))
    if missing:
        return UnsupportedSchema(missing)
    features = {name for name, path in OPTIONAL[chosen].items() if _has(schema, path)}
    if "v1beta1" in served:
        features.add("v1beta1")
    return Schema(f"{UPSTREAM.group}/{chosen}", frozenset(features))


def _has(schema: Mapping[str, Any], path: str) -> bool:
    """Whether the schema declares `path`; `{}` stands for any key of a map, `[]` for any item of a list."""
    for step in _steps(path):
        found = (
            schema.get(step)
            if step in ("additionalProperties", "items")
            else schema.get("properties", {}).get(step)
        )
        if not isinstance(found, Mapping):
            return False
        schema = found
    return True


def _steps(path: str) -> Iterator[str]:
    for part in path.split("."):
        yield part.rstrip("{}[]")
        if part.endswith("{}"):
            yield "additionalProperties"
        elif part.endswith("[]"):
            yield "items"
