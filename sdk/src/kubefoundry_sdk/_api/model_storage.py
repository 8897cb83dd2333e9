"""`spec.model.storage`: where the engine finds weights and keeps what it compiles.

A volume states a purpose, and the provider sets the variables that the engine reads for that purpose. A volume is an
existing claim, one that core creates, or the files of an OCI image. Other sources are in `podTemplate.spec.volumes`,
and mean the same to a pod without a purpose.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from kubefoundry_sdk._api import formats
from kubefoundry_sdk._api.engine_caches import PATHS
from kubefoundry_sdk._api.fields import ApiModel, Quantity
from kubefoundry_sdk._api.managed_claims import claim_name
from kubefoundry_sdk._api.pods import ObjectName
from kubefoundry_sdk._api.volumes import ImageVolume

MOST_VOLUMES: Final = 8

StoragePurpose = Literal["modelCache", "compilationCache", "custom"]


class StorageClaimTemplate(ApiModel):
    """A PersistentVolumeClaim that core creates. Of an existing claim, only `size` and `whenDeleted` can change."""

    size: Quantity
    """Size of the claim, for example "100Gi". A larger size enlarges the claim if its StorageClass allows that. A
    claim cannot shrink."""

    storage_class_name: ObjectName | None = None
    """StorageClass of the claim. Defaults to the cluster's default class. Cannot change."""

    access_mode: Literal["ReadWriteOnce", "ReadWriteMany"] = "ReadWriteOnce"
    """Pods that may mount the claim: ReadWriteOnce (those of one node; nearly every StorageClass has it) or
    ReadWriteMany (those of all nodes; needs a shared file system). Cannot change."""

    when_deleted: Literal["Retain", "Delete"] = "Retain"
    """What happens to the claim when the ModelDeployment is deleted: Retain keeps it, and a new ModelDeployment of
    the same name uses it again; Delete deletes it with its files. Some clusters refuse a change."""


class StorageVolume(ApiModel):
    """A volume in the engine's pods. Exactly one of claimName, claimTemplate, image must be set."""

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=formats.DNS_LABEL)]
    """Name of the volume. The provider rejects names that it uses itself."""

    claim_name: ObjectName | None = None
    """Name of an existing claim, in the namespace of the ModelDeployment."""

    claim_template: StorageClaimTemplate | None = None
    """Claim that core creates before the model starts. Its name is that of the ModelDeployment, a dash, and that of
    the volume; beyond 63 characters, a digest replaces the end."""

    image: ImageVolume | None = None
    """OCI image whose files are the volume, always read-only. It needs Kubernetes 1.35, or the feature gate
    ImageVolume. The engine loads a model cache in an image without the hub."""

    purpose: StoragePurpose = "custom"
    """What the engine uses the volume for: modelCache (weights, in the layout of HF_HOME), compilationCache (compiled
    code) or custom (nothing by itself). At most one volume has each cache's purpose."""

    mount_path: Annotated[str, Field(max_length=1024, pattern=formats.ABSOLUTE_PATH)] | None = None
    """Path in the engine's container. Defaults to /model-cache or /compilation-cache. Required for purpose custom.
    The provider rejects paths at which it mounts a volume itself."""

    sub_path: Annotated[str, Field(max_length=1024, pattern=formats.RELATIVE_PATH)] | None = None
    """Folder of the volume to mount, for example models. Defaults to the whole volume."""

    read_only: bool = False
    """Whether the engine can only read the files. Always the case for an image."""

    @property
    def is_read_only(self) -> bool:
        """Whether the engine can only read the files."""
        return self.read_only or self.image is not None

    @property
    def is_shared(self) -> bool:
        """Whether the spec states that pods on several nodes can mount the claim. It cannot for `claim_name`."""
        return self.claim_template is not None and self.claim_template.access_mode == "ReadWriteMany"

    @property
    def path(self) -> str:
        """The path of the mount: stated, or the default of the purpose."""
        return self.mount_path or PATHS[self.purpose]


class ModelStorage(ApiModel):
    """Where the weights are, and storage for caches."""

    volumes: Annotated[
        list[StorageVolume],
        Field(
            max_length=MOST_VOLUMES,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = Field(default_factory=list)
    """Claims and images that the engine's pods share. Pods that run no engine (a frontend, a Ray head) mount none."""

    uri: Annotated[str, Field(max_length=1024, pattern=formats.S3_URI)] | None = None
    """Folder of the model in object storage, s3://BUCKET/PATH, which the engine's own loader (vLLM, SGLang) reads
    instead of the hub. The id still names the model. Credentials, endpoint and region are variables in `env`."""

    offline: bool = False
    """Whether the engine loads only files that are in place, and fetches nothing from the hub. A model with a missing
    file does not start."""

    @property
    def is_offline(self) -> bool:
        """Whether the engine fetches nothing: stated, or because the model cache is an image."""
        in_image = any(volume.purpose == "modelCache" and volume.image for volume in self.volumes)
        return self.offline or in_image

    @property
    def claims(self) -> list[StorageVolume]:
        """The volumes with a claim."""
        return [volume for volume in self.volumes if volume.image is None]

    def with_claim_names(self, model: str) -> ModelStorage:
        """Return the storage with the names of the claims that core creates for the ModelDeployment `model`."""
        if not any(volume.claim_template and not volume.claim_name for volume in self.volumes):
            return self
        named = [
            volume.model_copy(update={"claim_name": claim_name(model, volume.name)})
            if volume.claim_template
            else volume
            for volume in self.volumes
        ]
        return self.model_copy(update={"volumes": named})
