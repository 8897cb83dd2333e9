"""Volumes of the engine's pods that give no access to the node (Kubernetes core/v1)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kubefoundry_sdk._api import formats
from kubefoundry_sdk._api.fields import ApiModel, Quantity
from kubefoundry_sdk._api.pods import ConfigKey, ObjectName
from kubefoundry_sdk._api.security_context import LIST

PartName = Annotated[str, Field(min_length=1, max_length=63, pattern=formats.DNS_LABEL)]
Mode = Annotated[int, Field(ge=0, le=0o777)]


class ClaimVolume(ApiModel):
    """A PersistentVolumeClaim of the namespace."""

    claim_name: ObjectName
    """Name of the claim."""

    read_only: bool | None = None
    """Whether the volume is read-only in all containers."""


class EmptyDirVolume(ApiModel):
    """An empty folder that is deleted with the pod."""

    medium: Literal["Memory"] | None = None
    """Memory keeps the files in memory, which counts as memory of the container. Defaults to the node's disk."""

    size_limit: Quantity | None = None
    """Largest size of the files."""


class KeyFile(ApiModel):
    """A key of a ConfigMap or Secret as a file."""

    key: ConfigKey
    """The key."""

    path: Annotated[str, Field(max_length=1024, pattern=formats.RELATIVE_PATH)]
    """Path of the file in the volume."""

    mode: Mode | None = None
    """Permissions of the file."""


_KeyFiles = Annotated[list[KeyFile], Field(min_length=1, max_length=64, json_schema_extra=LIST)]


class Files(ApiModel):
    """Files from the keys of an object."""

    items: _KeyFiles | None = None
    """Keys to use. Defaults to all of them, each in a file of its name."""

    default_mode: Mode | None = None
    """Permissions of the files. Defaults to 0644 (420)."""

    optional: bool | None = None
    """Whether the pod may start if the object or a key does not exist."""


class ConfigMapVolume(Files):
    """A ConfigMap of the namespace."""

    name: ObjectName
    """Name of the ConfigMap."""


class SecretVolume(Files):
    """A Secret of the namespace."""

    secret_name: ObjectName
    """Name of the Secret."""


class StorageRequests(ApiModel):
    """The size of a claim."""

    storage: Quantity
    """Size, for example "100Gi"."""


class StorageResources(ApiModel):
    """The size of a claim."""

    requests: StorageRequests
    """The size."""


class ClaimSpec(ApiModel):
    """The claim that is created for each pod."""

    access_modes: Annotated[
        list[Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]],
        Field(min_length=1, max_length=4, json_schema_extra=LIST),
    ]
    """How nodes may mount the volume."""

    resources: StorageResources
    """The size."""

    storage_class_name: ObjectName | None = None
    """StorageClass of the volume. Defaults to the cluster's default class."""


class ClaimTemplate(ApiModel):
    """Template of the claim."""

    spec: ClaimSpec
    """The claim that is created for each pod."""


class EphemeralVolume(ApiModel):
    """A claim that is created and deleted with each pod."""

    volume_claim_template: ClaimTemplate
    """Template of the claim."""


class ImageVolume(ApiModel):
    """The files of an OCI image, read-only (Kubernetes 1.35 and newer, or with the feature gate ImageVolume)."""

    reference: Annotated[str, Field(min_length=1, max_length=1024, pattern=formats.IMAGE)]
    """The image."""

    pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the kubelet pulls the image. Defaults to Always for the tag latest, otherwise to IfNotPresent."""


class Volume(ApiModel):
    """A volume of the engine's pods. Exactly one source must be set."""

    name: PartName
    """Name of the volume. The provider rejects names that it uses itself."""

    persistent_volume_claim: ClaimVolume | None = None
    """A PersistentVolumeClaim of the namespace."""

    empty_dir: EmptyDirVolume | None = None
    """An empty folder that is deleted with the pod."""

    config_map: ConfigMapVolume | None = None
    """A ConfigMap of the namespace."""

    secret: SecretVolume | None = None
    """A Secret of the namespace."""

    ephemeral: EphemeralVolume | None = None
    """A claim that is created and deleted with each pod."""

    image: ImageVolume | None = None
    """The files of an OCI image, read-only."""


class VolumeMount(ApiModel):
    """A volume in the engine's container."""

    name: PartName
    """Name of a volume in `podTemplate.spec.volumes`."""

    mount_path: Annotated[str, Field(max_length=1024, pattern=formats.ABSOLUTE_PATH)]
    """Path in the container. The provider rejects paths at which it mounts a volume itself."""

    sub_path: Annotated[str, Field(max_length=1024, pattern=formats.RELATIVE_PATH)] | None = None
    """Path in the volume. Defaults to the whole volume."""

    read_only: bool | None = None
    """Whether the container can only read the files."""
