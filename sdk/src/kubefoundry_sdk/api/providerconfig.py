"""InferenceProviderConfig: how a provider registers itself (contract §5)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kubefoundry_sdk.api import formats
from kubefoundry_sdk.api.fields import ALWAYS_THERE, MAX_INT32, ApiModel
from kubefoundry_sdk.api.modeldeployment import ServingMode
from kubefoundry_sdk.api.status import Conditions

ATOMIC = {"x-kubernetes-list-type": "atomic"}

EngineName = Annotated[str, Field(min_length=1, max_length=63, pattern=formats.DNS_LABEL)]


class CapabilitiesSpec(ApiModel):
    """What a provider can serve."""

    engines: Annotated[list[EngineName], Field(max_length=32, json_schema_extra={**ATOMIC})] = Field(
        default_factory=list
    )
    """Engines that it supports, as in a ModelDeployment's engine.type."""

    serving_modes: Annotated[list[ServingMode], Field(max_length=8, json_schema_extra={**ATOMIC})] = Field(
        default_factory=list
    )
    """Serving modes that it supports: aggregated, disaggregated."""

    cpu_support: bool = False
    """Whether it serves models without a GPU."""

    gpu_support: bool = False
    """Whether it serves models on GPUs."""


class SelectionRuleSpec(ApiModel):
    """A condition under which the provider is a candidate for a ModelDeployment that names none."""

    condition: Annotated[str, Field(min_length=1, max_length=1024)]
    """A CEL expression over `spec` and `metadata` of the ModelDeployment that gives true or false, for example
    spec.engine.type == 'llamacpp'."""

    priority: Annotated[int, Field(ge=-MAX_INT32, le=MAX_INT32)] = 0
    """Priority of the rule; of all matching rules, the one with the highest priority decides."""

    reason: Annotated[str, Field(max_length=1024)] | None = None
    """Human-readable reason; shown in status.provider.selectedReason if this rule decides."""


class ProviderConfigSpec(ApiModel):
    """What a provider can serve, and when to select it."""

    capabilities: Annotated[CapabilitiesSpec, ALWAYS_THERE] = Field(default_factory=CapabilitiesSpec)
    """What this provider can serve."""

    selection_rules: Annotated[
        list[SelectionRuleSpec], Field(max_length=64, json_schema_extra={**ATOMIC})
    ] = Field(default_factory=list)
    """When to select this provider for a ModelDeployment that names none. Without rules it must be named."""

    documentation: Annotated[str, Field(max_length=2048)] | None = None
    """Where this provider is documented (a URL)."""


class ProviderConfigStatus(ApiModel):
    """The state of a provider, as its controller reports it."""

    ready: bool = False
    """Whether the controller runs and a supported version of its upstream system is installed."""

    version: str | None = None
    """Name and version of the controller."""

    last_heartbeat: Annotated[str, Field(json_schema_extra={"format": "date-time"})] | None = None
    """When the controller last reported."""

    upstream_crd_version: Annotated[str | None, Field(alias="upstreamCRDVersion")] = None
    """API version of the installed upstream resource."""

    upstream_schema_hash: str | None = None
    """Digest of the installed upstream schema, for support only; no decision depends on it."""

    conditions: Conditions = Field(default_factory=list)
    """RulesValid (its selection rules are valid), UpstreamReady and others, each with its reason."""
