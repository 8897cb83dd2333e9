"""Reading the spec of a ModelDeployment, and the types of its fields for a provider's overrides."""

from __future__ import annotations

from kubefoundry_sdk._api.fields import ApiModel, Count, ItemsLike, Quantity
from kubefoundry_sdk._api.model_storage import (
    ModelStorage,
    StorageClaimTemplate,
    StoragePurpose,
    StorageVolume,
)
from kubefoundry_sdk._api.modeldeployment import (
    ComponentScaling,
    Engine,
    EngineSpec,
    GpuSpec,
    LabelValue,
    ModelDeploymentSpec,
    ModelSpec,
    PodMetadata,
    PodTemplateSpec,
    ProviderSpec,
    ResourcesSpec,
    ScalingSpec,
    SecretsSpec,
    ServingMode,
    ServingSpec,
    Source,
)
from kubefoundry_sdk._api.pod_spec import POD_SETTINGS, EngineContainer, PodSpec
from kubefoundry_sdk._api.pods import ObjectName
from kubefoundry_sdk._api.quantity import BYTE, MILLICORE
from kubefoundry_sdk._api.quantity import parse as parse_quantity
from kubefoundry_sdk._api.quantity import same as same_quantity
from kubefoundry_sdk._api.quantity import share as share_of_quantity
from kubefoundry_sdk._api.volumes import ImageVolume
from kubefoundry_sdk._provider.reconcile.compatibility import supports as incompatibilities
from kubefoundry_sdk._provider.refused_fields import refused_fields

__all__ = [
    "BYTE",
    "MILLICORE",
    "POD_SETTINGS",
    "ApiModel",
    "ComponentScaling",
    "Count",
    "Engine",
    "EngineContainer",
    "EngineSpec",
    "GpuSpec",
    "ImageVolume",
    "ItemsLike",
    "LabelValue",
    "ModelDeploymentSpec",
    "ModelSpec",
    "ModelStorage",
    "ObjectName",
    "PodMetadata",
    "PodSpec",
    "PodTemplateSpec",
    "ProviderSpec",
    "Quantity",
    "ResourcesSpec",
    "ScalingSpec",
    "SecretsSpec",
    "ServingMode",
    "ServingSpec",
    "Source",
    "StorageClaimTemplate",
    "StoragePurpose",
    "StorageVolume",
    "incompatibilities",
    "parse_quantity",
    "refused_fields",
    "same_quantity",
    "share_of_quantity",
]
