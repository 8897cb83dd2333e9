"""The typed status of a LlamaStackDistribution (sources §5.1; sources §5.2 for externalProviderStatus)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from kubefoundry_sdk.api.fields import ApiModel
from kubefoundry_sdk.api.status import Conditions

Phase = Literal["Pending", "Initializing", "Ready", "Failed", "Terminating"]
ProviderPhase = Literal["Pending", "Installing", "Ready", "Failed"]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class Snake(ApiModel):
    """A part that is written as llama-stack writes it: with underscores."""

    model_config = ConfigDict(alias_generator=None)


class Health(ApiModel):
    """What llama-stack says of a provider's health."""

    status: str
    """Its state."""

    message: str
    """More about it."""


class ProviderInfo(Snake):
    """A provider as /v1/providers lists it."""

    api: str
    """The API that it serves."""

    provider_id: str
    """Its name."""

    provider_type: str
    """Its type."""

    config: dict[str, Any]
    """Its settings, without secrets."""

    health: Health
    """What llama-stack says of its health."""


class DistributionConfig(ApiModel):
    """What runs, as the server tells it."""

    active_distribution: str | None = None
    """Name of the distribution; custom where an image is given."""

    available_distributions: dict[str, str] | None = None
    """Names that the operator knows, and their images."""

    providers: list[ProviderInfo] | None = None
    """The providers that the server has."""


class VersionInfo(ApiModel):
    """Versions."""

    operator_version: str | None = None
    """Version of the operator."""

    llama_stack_server_version: str | None = None
    """Version of llama-stack in the server."""

    last_updated: Time | None = None
    """When a version last changed."""


class ExternalProviderStatus(ApiModel):
    """How far an external provider is: the worst over the newest pods."""

    provider_id: str
    """Name of the provider."""

    image: str
    """Image that it is installed from."""

    phase: ProviderPhase
    """Pending, Installing, Ready or Failed."""

    message: str | None = None
    """What goes on or what went wrong, and what to do."""

    init_container_name: str | None = None
    """Init container that installs it."""

    image_id: Annotated[str | None, Field(alias="imageID")] = None
    """The image as the node resolved it."""

    package: str | None = None
    """Name of the provider's package."""

    version: str | None = None
    """Version of the provider's package."""

    last_transition_time: Time | None = None
    """When the phase last changed."""


class ModelDeploymentStatus(ApiModel):
    """How a ModelDeployment is used as a provider."""

    name: str
    """Name of the ModelDeployment."""

    provider_id: str
    """Name of the provider."""

    endpoint: str | None = None
    """Base URL that the server uses."""

    ready: bool
    """Whether the ModelDeployment serves now."""

    message: str | None = None
    """What is missing, and what to do."""

    last_transition_time: Time | None = None
    """When ready last changed."""


class Status(ApiModel):
    """What was found."""

    phase: Phase | None = None
    """Summary of the state."""

    version: VersionInfo | None = None
    """Versions."""

    distribution_config: DistributionConfig | None = None
    """What runs, as the server tells it."""

    conditions: Conditions = Field(default_factory=list)
    """DeploymentReady, HealthCheck, StorageReady, ServiceReady, ExternalProvidersReady, ModelDeploymentsResolved
    and others, each with its reason."""

    available_replicas: int | None = None
    """Pods that requests can reach."""

    service_url: Annotated[str | None, Field(alias="serviceURL")] = None
    """Where the server answers inside the cluster."""

    route_url: Annotated[str | None, Field(alias="routeURL")] = None
    """Where it answers from outside; empty while the Ingress has no address."""

    external_provider_status: Annotated[
        list[ExternalProviderStatus],
        Field(
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["providerId"]}
        ),
    ] = Field(default_factory=list)
    """The external providers, in the order of installation."""

    model_deployments: Annotated[
        list[ModelDeploymentStatus],
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
    ] = Field(default_factory=list)
    """The ModelDeployments that serve as providers."""
