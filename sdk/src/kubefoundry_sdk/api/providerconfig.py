"""InferenceProviderConfig: how a provider registers itself (003 §3.9)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from kubefoundry_sdk.api.modeldeployment import ApiModel


class CapabilitiesSpec(ApiModel):
    engines: list[str] = Field(default_factory=list)
    serving_modes: list[str] = Field(default_factory=list)
    cpu_support: bool = False
    gpu_support: bool = False


class SelectionRuleSpec(ApiModel):
    condition: Annotated[str, Field(min_length=1, max_length=1024)]
    priority: int = 0
    reason: str | None = None


class ProviderConfigSpec(ApiModel):
    capabilities: CapabilitiesSpec = Field(default_factory=CapabilitiesSpec)
    selection_rules: list[SelectionRuleSpec] = Field(default_factory=list)
    documentation: str | None = None


class ProviderConfigStatus(ApiModel):
    ready: bool = False
    version: str | None = None
    last_heartbeat: str | None = None
    upstream_crd_version: Annotated[str | None, Field(alias="upstreamCRDVersion")] = None
    upstream_schema_hash: str | None = None
    conditions: list[dict[str, Any]] = Field(default_factory=list)
