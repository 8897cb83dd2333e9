"""`spec.provider.overrides` of this provider (contract §2)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from kubefoundry_sdk.spec import ModelDeploymentSpec


class _Strict(BaseModel):
    """Wrong types are errors; the runtime warns about unknown keys."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", alias_generator=to_camel)


class HeadResources(_Strict):
    """Requests of the Ray head's pod; memory is its limit as well."""

    cpu: str | int = "2"
    memory: str | int = "4Gi"


class Head(_Strict):
    """Settings of the Ray head, which runs no engine."""

    resources: HeadResources = Field(default_factory=HeadResources)
    ray_start_params: dict[str, str] = Field(default_factory=dict)
    image_pull_secrets: list[str] = Field(default_factory=list)
    """Names of Secrets; the head's pod has a ServiceAccount of its own, which has none (cluster.py)."""


class Overrides(_Strict):
    """The fields of `provider.overrides` that KubeRay reads."""

    head: Head = Field(default_factory=Head)


def overrides_of(spec: ModelDeploymentSpec) -> Overrides:
    """Return the overrides of a spec. Raise pydantic's ValidationError for wrong types."""
    return spec.overrides_as(Overrides)
