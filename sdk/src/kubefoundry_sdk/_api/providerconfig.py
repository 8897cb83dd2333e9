"""InferenceProviderConfig: how a provider registers itself (contract §5)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kubefoundry_sdk._api import formats
from kubefoundry_sdk._api.fields import ALWAYS_THERE, MAX_INT32, ApiModel
from kubefoundry_sdk._api.modeldeployment import ServingMode
from kubefoundry_sdk._api.status import Conditions

ATOMIC = {"x-kubernetes-list-type": "atomic"}

EngineName = Annotated[str, Field(min_length=1, max_length=63, pattern=formats.DNS_LABEL)]


class CapabilitiesSpec(ApiModel):
    """What a provider supports."""

    engines: Annotated[list[EngineName], Field(max_length=32, json_schema_extra={**ATOMIC})] = Field(
        default_factory=list
    )
    """Supported engines, as in a ModelDeployment's engine.type."""

    serving_modes: Annotated[list[ServingMode], Field(max_length=8, json_schema_extra={**ATOMIC})] = Field(
        default_factory=list
    )
    """Supported serving modes: aggregated, disaggregated."""

    cpu_support: bool = False
    """Whether the provider serves models without GPUs."""

    gpu_support: bool = False
    """Whether the provider serves models on GPUs."""


class SelectionRuleSpec(ApiModel):
    """A rule that makes the provider a candidate for ModelDeployments that name no provider."""

    condition: Annotated[str, Field(min_length=1, max_length=1024)]
    """A CEL expression over `spec` and `metadata` of the ModelDeployment that evaluates to true or false, for example
    spec.engine.type == 'llamacpp'."""

    priority: Annotated[int, Field(ge=-MAX_INT32, le=MAX_INT32)] = 0
    """Priority of the rule. The matching rule with the highest priority wins."""

    reason: Annotated[str, Field(max_length=1024)] | None = None
    """Human-readable reason, shown in status.provider.selectedReason if this rule wins."""


class ProviderConfigSpec(ApiModel):
    """What a provider can serve, and when to select it."""

    capabilities: Annotated[CapabilitiesSpec, ALWAYS_THERE] = Field(default_factory=CapabilitiesSpec)
    """What the provider supports."""

    selection_rules: Annotated[
        list[SelectionRuleSpec], Field(max_length=64, json_schema_extra={**ATOMIC})
    ] = Field(default_factory=list)
    """When to select this provider for ModelDeployments that name no provider. Without rules, the provider is only
    used by ModelDeployments that name it."""

    documentation: Annotated[str, Field(max_length=2048)] | None = None
    """URL of the provider's documentation."""


class ProviderConfigStatus(ApiModel):
    """The observed state of a provider, reported by its controller."""

    ready: bool = False
    """Whether the controller runs and a supported version of its upstream system is installed."""

    version: str | None = None
    """Name and version of the controller."""

    last_heartbeat: Annotated[str, Field(json_schema_extra={"format": "date-time"})] | None = None
    """When the controller last reported."""

    upstream_crd_version: Annotated[str | None, Field(alias="upstreamCRDVersion")] = None
    """API version of the installed upstream resource."""

    upstream_schema_hash: str | None = None
    """Digest of the installed upstream schema. For support only; nothing depends on it."""

    flags: Annotated[dict[str, str], Field(max_length=64)] = Field(default_factory=dict)
    """The flags that shape what the controller writes, as it was started with them (`--default-image`)."""

    settings: Annotated[dict[str, str], Field(max_length=64)] = Field(default_factory=dict)
    """Settings of the upstream system that the controller goes by: read from its operator, or stated by a flag."""

    conditions: Conditions = Field(default_factory=list)
    """Conditions such as RulesValid (the selection rules compile) and UpstreamReady."""
