"""Which Workspace schema is installed, read off the fields of its CRD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_sdk import Object, Schema, UnsupportedSchema, UpstreamKind

WORKSPACES: Final = UpstreamKind(group="kaito.sh", plural="workspaces", kind="Workspace")

KNOWN_VERSIONS: Final = ("v1beta1", "v1alpha1")
"""Versions that this provider can write, best first: v1beta1 is served and stored from KAITO 0.4.5 on."""

REQUIRED: Final = (
    "resource.count",
    "resource.labelSelector",
    "inference.template",
    "inference.preset.name",
)
"""Fields that every Workspace CRD from 0.3.0 to 0.12.0 has (config/crd/bases/kaito.sh_workspaces.yaml)."""

ENGINE_CONFIG: Final = "inference.config"
"""Presets take vLLM options (0.4.4). Presets of a CRD without it need not be vLLM at all (0.3)."""

ACCESS_SECRET: Final = "inference.preset.presetOptions.modelAccessSecret"
"""Presets take a Hugging Face token (0.4.5, v1beta1 only)."""

ANY_MODEL: Final = "status.state"
"""Came with 0.9, as did presets for any `org/model`, which leave no trace of their own in the CRD."""

INSTANCE_TYPE_DEFAULT: Final = "resource.instanceType default"
"""The CRD fills in a GPU instance type (v1beta1 up to 0.7, every v1alpha1); existing nodes are taken by name."""


LOST: Final = (
    (ENGINE_CONFIG, "vllm without image"),
    (ACCESS_SECRET, "secrets.huggingFaceToken without image"),
    (ANY_MODEL, "models without a built-in preset where image is left out"),
)
"""What a ModelDeployment cannot ask for while the CRD lacks that feature (`supports`)."""

BY_NAME: Final = "existing nodes by nodeSelector"
"""Lost while the CRD fills in an instance type: existing nodes are then taken by name."""


def probe(crd: Object) -> Schema | UnsupportedSchema:
    """How to write Workspaces with this CRD: the storage version where it is known (contract §4.8)."""
    version = _version(crd)
    if version is None:
        return UnsupportedSchema(tuple(f"version {name}" for name in KNOWN_VERSIONS))
    root = version["schema"]["openAPIV3Schema"]
    missing = tuple(path for path in REQUIRED if _field(root, path) is None)
    if missing:
        return UnsupportedSchema(missing)
    features = {path for path in (ENGINE_CONFIG, ACCESS_SECRET, ANY_MODEL) if _field(root, path) is not None}
    lost = [words for feature, words in LOST if feature not in features]
    if "default" in (_field(root, "resource.instanceType") or {}):
        features.add(INSTANCE_TYPE_DEFAULT)
        lost.append(BY_NAME)
    return Schema(f"{WORKSPACES.group}/{version['name']}", frozenset(features), tuple(lost))


def _version(crd: Object) -> Mapping[str, Any] | None:
    served = {item["name"]: item for item in crd["spec"]["versions"] if item.get("served")}
    known = [served[name] for name in KNOWN_VERSIONS if name in served]
    return next((item for item in known if item.get("storage")), known[0] if known else None)


def _field(root: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = root
    for name in path.split("."):
        found = (found or {}).get("properties", {}).get(name)
    return found
