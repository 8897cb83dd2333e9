"""The typed status of a LlamaStackDistribution (sources §5.1; sources §5.2 for externalProviderStatus)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from kubefoundry_sdk._api.fields import ApiModel
from kubefoundry_sdk._api.status import Conditions

Phase = Literal["Pending", "Initializing", "Ready", "Failed", "Terminating"]
ProviderPhase = Literal["Pending", "Installing", "Ready", "Failed"]
"""A new phase would be refused by the CRD of an earlier release, so services have fields of their own."""

ProviderMode = Literal["Inline", "Sidecar", "Deployment"]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class Snake(ApiModel):
    """A part that is written as llama-stack writes it: with underscores."""

    model_config = ConfigDict(alias_generator=None)


class Health(ApiModel):
    """A provider's health, as reported by llama-stack."""

    status: str
    """State of the provider."""

    message: str
    """Details."""


class ProviderInfo(Snake):
    """A provider as /v1/providers lists it."""

    api: str
    """API that the provider serves."""

    provider_id: str
    """Id of the provider."""

    provider_type: str
    """Type of the provider."""

    config: dict[str, Any]
    """Settings of the provider, without secrets."""

    health: Health
    """Health of the provider, as reported by llama-stack."""


class DistributionConfig(ApiModel):
    """The running configuration, as reported by the server."""

    active_distribution: str | None = None
    """Name of the distribution, or custom if the spec sets an image."""

    available_distributions: dict[str, str] | None = None
    """Distributions that the operator knows, and their images."""

    providers: list[ProviderInfo] | None = None
    """Providers of the server."""


class VersionInfo(ApiModel):
    """Versions of operator and server."""

    operator_version: str | None = None
    """Version of the operator."""

    llama_stack_server_version: str | None = None
    """Version of llama-stack in the server."""

    last_updated: Time | None = None
    """When a version last changed."""


class ExternalProviderStatus(ApiModel):
    """State of an external provider: the worst across the newest pods."""

    provider_id: str
    """Id of the provider."""

    image: str
    """Image of the provider."""

    phase: ProviderPhase
    """Pending, Installing, Ready or Failed."""

    message: str | None = None
    """Progress or error, and what to do."""

    init_container_name: str | None = None
    """Init container that installs the provider."""

    image_id: Annotated[str | None, Field(alias="imageID")] = None
    """Digest of the image, as resolved by the node."""

    package: str | None = None
    """Name of the provider's package."""

    version: str | None = None
    """Version of the provider's package."""

    type: str | None = None
    """Type of the provider, as its image states it."""

    mode: ProviderMode | None = None
    """Where the provider works: Inline in the server, or with a service of its own."""

    container: str | None = None
    """Container of the service, or its Deployment if it has pods of its own."""

    endpoint: str | None = None
    """Address of a service with pods of its own."""

    ready: bool | None = None
    """Whether the provider works: the server, or its service, is ready in every pod. One available pod is enough for
    a service with pods of its own."""

    restarts: int | None = None
    """Restarts of the service in all pods."""

    last_transition_time: Time | None = None
    """When phase, ready or restarts last changed."""


class ModelDeploymentStatus(ApiModel):
    """A ModelDeployment that is used as a provider."""

    name: str
    """Name of the ModelDeployment."""

    provider_id: str
    """Id of the provider."""

    endpoint: str | None = None
    """Base URL that the server uses."""

    ready: bool
    """Whether the ModelDeployment is serving."""

    message: str | None = None
    """What is missing, and what to do."""

    last_transition_time: Time | None = None
    """When `ready` last changed."""


class Status(ApiModel):
    """The observed state."""

    phase: Phase | None = None
    """Summary of the state."""

    version: VersionInfo | None = None
    """Versions of operator and server."""

    distribution_config: DistributionConfig | None = None
    """The running configuration, as reported by the server."""

    conditions: Conditions = Field(default_factory=list)
    """Conditions such as DeploymentReady, HealthCheck, StorageReady, ServiceReady, ExternalProvidersReady and
    ModelDeploymentsResolved."""

    available_replicas: int | None = None
    """Number of pods that can receive requests."""

    service_url: Annotated[str | None, Field(alias="serviceURL")] = None
    """URL of the server inside the cluster."""

    route_url: Annotated[str | None, Field(alias="routeURL")] = None
    """URL of the server from outside of the cluster. Empty while the Ingress has no address."""

    external_provider_status: Annotated[
        list[ExternalProviderStatus],
        Field(
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["providerId"]}
        ),
    ] = Field(default_factory=list)
    """The external providers, in the order of installation."""

    providers_ready: str | None = None
    """External providers that are ready, and all of them: 2/3."""

    model_deployments: Annotated[
        list[ModelDeploymentStatus],
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
    ] = Field(default_factory=list)
    """The ModelDeployments that serve as providers."""
