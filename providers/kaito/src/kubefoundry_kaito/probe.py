"""Determines the installed Workspace schema by the fields of its CRD."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kubefoundry_sdk import Object, Schema, UnsupportedSchema, UpstreamKind
from kubefoundry_sdk.crd import Fields, by_fields, declared, served_version, version_schema

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
"""Presets accept vLLM options (0.4.4). Presets of a CRD without it may not be vLLM at all (0.3)."""

ACCESS_SECRET: Final = "inference.preset.presetOptions.modelAccessSecret"
"""Presets accept a Hugging Face token (0.4.5, v1beta1 only)."""

ANY_MODEL: Final = "status.state"
"""A field that is new in 0.9. So are presets for any `org/model`, which add no field to the CRD themselves."""

INSTANCE_TYPE_DEFAULT: Final = "resource.instanceType default"
"""The CRD defaults a GPU instance type (v1beta1 up to 0.7, every v1alpha1); existing nodes are named one by one."""


FIELDS: Final = Fields(
    needed=REQUIRED,
    optional={path: path for path in (ENGINE_CONFIG, ACCESS_SECRET, ANY_MODEL)},
    lost={
        ENGINE_CONFIG: "vllm without image",
        ACCESS_SECRET: "secrets.huggingFaceToken without image",
        ANY_MODEL: "models without a built-in preset where image is left out",
    },
)
"""lost: requests of a ModelDeployment that are refused while the CRD lacks the feature (`supports`)."""

BY_NAME: Final = "existing nodes by nodeSelector"
"""Lost while the CRD defaults an instance type, because existing nodes must then be named."""


def probe(crd: Object) -> Schema | UnsupportedSchema:
    """Return how to write Workspaces with this CRD: the storage version, if it is supported (contract §4.10)."""
    schema = by_fields(dict.fromkeys(KNOWN_VERSIONS, FIELDS), crd)
    version = served_version(crd, dict.fromkeys(KNOWN_VERSIONS))
    if isinstance(schema, UnsupportedSchema) or version is None:
        return schema
    if "default" in (declared(version_schema(version), "resource.instanceType") or {}):
        return replace(
            schema, features=schema.features | {INSTANCE_TYPE_DEFAULT}, lost=(*schema.lost, BY_NAME)
        )
    return schema
