"""The typed status of a ModelDeployment (contract §3 says who writes which field)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from kubefoundry_sdk._api import formats
from kubefoundry_sdk._api.conditions import MAX_MESSAGE
from kubefoundry_sdk._api.fields import ApiModel, Count, ItemsLike
from kubefoundry_sdk._api.modeldeployment import Engine, Phase
from kubefoundry_sdk._api.pods import ATOMIC

Generation = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]


class StatusCondition(ApiModel):
    """One aspect of the current state (metav1.Condition)."""

    type: Annotated[str, Field(max_length=316, pattern=formats.CONDITION_TYPE)]
    """Type of the condition, for example Ready; each type occurs once."""

    status: Literal["True", "False", "Unknown"]
    """Status of the condition: True, False or Unknown."""

    observed_generation: Generation | None = None
    """The metadata.generation that the condition was set for."""

    last_transition_time: Annotated[str, Field(json_schema_extra={"format": "date-time"})]
    """When status last changed."""

    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=formats.CONDITION_REASON)]
    """Machine-readable reason for the last transition; docs/conditions.md lists the reasons of each type."""

    message: Annotated[str, Field(max_length=MAX_MESSAGE)]
    """Human-readable explanation."""


Conditions = Annotated[
    list[dict[str, Any]],
    ItemsLike(StatusCondition),
    Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
]
"""Conditions as JSON; every writer owns its own by `type`."""


class ProviderStatus(ApiModel):
    """The selected provider and what it created."""

    name: str | None = None
    """Name of the provider that runs this deployment."""

    selected_reason: str | None = None
    """Why this provider was selected."""

    engine: Engine | None = None
    """Engine that was selected. Set only while the spec has no engine.type."""

    resource_name: str | None = None
    """Name of the provider's object, in the same namespace."""

    resource_kind: str | None = None
    """Kind of the provider's object."""

    resource_api_version: Annotated[str | None, Field(alias="resourceAPIVersion")] = None
    """API version that the provider uses for its object."""


class LeftOutProvider(ApiModel):
    """A provider that refused this generation of the spec before it created anything."""

    name: str
    """Name of the provider, or PROVIDER/ENGINE if the spec names no engine."""

    message: Annotated[str, Field(max_length=1024)] | None = None
    """The provider's reason."""


class DeniedProvider(ApiModel):
    """A provider that the creator of the ModelDeployment may not use."""

    name: str
    """Name of the provider."""

    message: Annotated[str, Field(max_length=1024)] | None = None
    """The missing permission, or the list of allowed providers."""


class SelectionStatus(ApiModel):
    """The memory of the selector. Every selector keeps it, so that one can take over from another."""

    reselect: Annotated[str, Field(max_length=128)] | None = None
    """The last value of the annotation kubefoundry.ai/reselect that was acted on: the value, or sha256: and 16 hex
    digits if it is longer than 64 characters or has odd ones. Empty if there was none."""

    left_out: Annotated[
        list[LeftOutProvider],
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
    ] = Field(default_factory=list)
    """Providers that are not selected for the generation of condition ProviderSelected."""

    denied: Annotated[
        list[DeniedProvider],
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
    ] = Field(default_factory=list)
    """Providers that the creator could not use when the selector last chose a provider. Set only if the selector
    checks that (--check-provider-use)."""


MOST_APIS: Final = 16
"""APIs of an endpoint."""


class ReplicasStatus(ApiModel):
    """Numbers of serving units. In disaggregated mode, prefill and decode together."""

    desired: Count | None = None
    """Units that should run."""

    ready: Count | None = None
    """Units that are ready to serve."""

    available: Count | None = None
    """Units that can receive requests."""


class EndpointStatus(ApiModel):
    """Address of the API inside the cluster."""

    service: str | None = None
    """Name of the Service, in the same namespace."""

    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port of the Service."""

    url: Annotated[str, Field(max_length=2048, pattern=formats.ENDPOINT_URL)] | None = None
    """Base URL of the API's paths (/v1/…), if that is not plain http at the Service: another scheme or path, or a
    gateway in another namespace, for which service and port are absent."""

    model: Annotated[str, Field(max_length=253, pattern=formats.REPORTED_NAME)] | None = None
    """Name of the model in requests to the API; absent if the spec does not show it, as for a model in an image."""

    apis: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=63, pattern=formats.DNS_LABEL)]],
        # not a set, in which values that others add would stay
        Field(max_length=MOST_APIS, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ] = Field(default_factory=list)
    """APIs that the server offers: openai-chat (/v1/chat/completions), openai-completions (/v1/completions),
    openai-embeddings (/v1/embeddings), or another one that the provider names. Absent if the spec does not show
    them."""


StepName = Literal["PodCreated", "PodScheduled", "ContainersStarted", "PodReady"]


class StartStep(ApiModel):
    """A step of a start: one that the pod has reached, or the step for which the pod waits."""

    name: StepName
    """Name of the step."""

    seconds: Count | None = None
    """Duration of a step that the pod has reached. The first one begins with the apply that began the start, any
    other one with the step before. Containers that were restarted count from their last start, and readiness from its
    last change."""

    since: Annotated[str, Field(json_schema_extra={"format": "date-time"})] | None = None
    """When the wait for the step began, instead of `seconds`."""


class StartStatus(ApiModel):
    """Steps of the start of the slowest pod.

    Pulling an image is a part of ContainersStarted, loading weights a part of PodReady, because no pod reports them.
    """

    # The provider alone writes it, so nobody else may add a step.
    model_config = ATOMIC

    pod: Annotated[str, Field(max_length=253)] | None = None
    """Name of the pod; absent while there is none."""

    steps: Annotated[
        list[StartStep], Field(max_length=4, json_schema_extra={"x-kubernetes-list-type": "atomic"})
    ] = Field(default_factory=list)
    """Steps in their order: all that the pod has reached, and the next one if it waits for it."""


class ModelDeploymentStatus(ApiModel):
    """The observed state of a ModelDeployment."""

    phase: Phase | None = None
    """Summary: Pending (not started), Deploying, Running (serving), Failed (not serving; may recover) or
    Terminating."""

    message: str | None = None
    """Human-readable summary of the current state."""

    observed_generation: Generation | None = None
    """The metadata.generation that phase, message and replicas refer to."""

    provider: ProviderStatus | None = None
    """The selected provider and what it created."""

    selection: SelectionStatus | None = None
    """The memory of the selector; absent while a provider is named in the spec."""

    replicas: ReplicasStatus | None = None
    """Numbers of serving units."""

    selector: Annotated[str, Field(max_length=1024)] | None = None
    """Label selector of the serving pods, for autoscalers that use the scale subresource. Set only if
    scaling.replicas scales these pods."""

    endpoint: EndpointStatus | None = None
    """Address of the API. Set only while the model serves."""

    start: StartStatus | None = None
    """Steps of the last start that an apply of the provider began, kept while the model serves, also when it is
    scaled. Absent once it stops serving, and if the provider does not watch pods."""

    conditions: Conditions = Field(default_factory=list)
    """Conditions such as Validated, ProviderSelected, ProviderCompatible, ResourceCreated and Ready."""
