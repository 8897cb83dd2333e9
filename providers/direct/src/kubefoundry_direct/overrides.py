"""`spec.provider.overrides` of this provider: settings of a pod that no field of the spec can express."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from kubefoundry_sdk.spec import ModelDeploymentSpec, ObjectName

Rollout = Literal["surge", "replace"]

Cluster = Literal["cluster"]
"""The cluster gives the pods their user and groups, as OpenShift does by namespace."""

CLUSTER: Final[Cluster] = "cluster"

LARGEST_ID: Final = 2**31 - 1
"""Largest id of a user."""


class Overrides(BaseModel):
    """Wrong types are errors; the runtime warns about unknown keys."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", alias_generator=to_camel)

    rollout: Rollout | None = None
    """How a change rolls out: surge (a new pod is ready before an old one stops, which needs room for one more pod)
    or replace (an old pod stops first, which needs no more room). The default depends on the claim and the number of
    GPUs."""

    cache_claim: ObjectName | None = None
    """PersistentVolumeClaim of the same namespace that keeps the engine's downloads."""

    shared_memory: str | int | None = None
    """Largest size of /dev/shm. Defaults to the container's memory limit."""

    drain_seconds: Annotated[int, Field(ge=0, le=3600)] = 30
    """Seconds for which a terminating pod finishes its open requests before its server is stopped."""

    startup_seconds: Annotated[int, Field(ge=60, le=86400)] = 3600
    """Seconds in which a pod may download and load the model before its container is restarted."""

    command: Annotated[list[str], Field(min_length=1, max_length=64)] | None = None
    """Command of the container, in place of the engine's."""

    run_as_user: Annotated[int, Field(ge=0, le=LARGEST_ID)] | Cluster | None = None
    """Id of the user and group that the server runs as; 0 is root, which Pod Security `restricted` refuses. `cluster`
    leaves both to the cluster. Defaults to the provider's `--run-as-user`."""

    image_pull_secrets: Annotated[list[ObjectName], Field(max_length=16)] = Field(default_factory=list)
    """Names of Secrets with credentials of the image's registry."""

    runtime_class_name: ObjectName | None = None
    """RuntimeClass of the pods, where GPUs need one (`nvidia` on k3s)."""


def overrides_of(spec: ModelDeploymentSpec) -> Overrides:
    """Return the overrides of a spec.

    Raise pydantic's ValidationError for wrong types, which the runtime reports first.
    """
    return spec.overrides_as(Overrides)
