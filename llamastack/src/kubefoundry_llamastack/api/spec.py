"""The typed spec of a LlamaStackDistribution (sources §5.1; externalProviders: FR-006 to FR-010).

Parts of pods stay JSON: they go into the pod template as they are, and the CRD describes them by the fragments of
Kubernetes' own schema (`core_fragments.json`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from kubefoundry_llamastack.api.fragments import QUANTITY
from kubefoundry_sdk.api import formats
from kubefoundry_sdk.api.fields import ApiModel

Int32 = Annotated[int, Field()]
Text = Annotated[str, Field(min_length=1)]
JsonObject = dict[str, Any]
ATOMIC = Field(json_schema_extra={"x-kubernetes-list-type": "atomic"})
ProviderId = Annotated[str, Field(min_length=1, max_length=45, pattern=formats.DNS_LABEL)]
"""45 characters: with `external-provider-` before it, it names an init container (sources §5.2)."""


class AllowedFrom(ApiModel):
    """Who may reach the server besides its own namespace."""

    namespaces: list[str] | None = None
    """Names of namespaces; "*" stands for all."""

    labels: list[str] | None = None
    """Label keys; namespaces that carry one may call, whatever its value."""


class NetworkSpec(ApiModel):
    """How the server is reached."""

    expose_route: bool = False
    """Whether an Ingress is made for the server."""

    allowed_from: AllowedFrom | None = None
    """Who may call; enforced where the operator's network policies are switched on."""


class Distribution(ApiModel):
    """Which distribution image runs; either its name or its image."""

    name: str | None = None
    """A name that the operator knows, for example starter."""

    image: str | None = None
    """A container image."""


class ContainerSpec(ApiModel):
    """The server's container."""

    name: str = "llama-stack"
    """Name of the container."""

    port: Int32 | None = None
    """Port that the server listens on; 8321 when omitted."""

    resources: JsonObject | None = None
    """Requests and limits of the container."""

    env: list[JsonObject] | None = None
    """Environment variables; one that repeats the operator's own replaces it."""

    command: list[str] | None = None
    """Command in place of the image's entrypoint."""

    args: list[str] | None = None
    """Arguments of the command."""


class PodOverrides(ApiModel):
    """Changes to the pod."""

    service_account_name: str | None = None
    """ServiceAccount of the pods, in place of the one that the operator makes."""

    termination_grace_period_seconds: Annotated[int, Field(json_schema_extra={"format": "int64"})] | None = (
        None
    )
    """Seconds that the pod gets to end."""

    volumes: list[JsonObject] | None = None
    """Further volumes of the pod."""

    volume_mounts: list[JsonObject] | None = None
    """Further mounts of the server's container."""


class PodDisruptionBudget(ApiModel):
    """How many pods may be away at a time."""

    min_available: int | str | None = None
    """Pods that have to stay, as a number or a share."""

    max_unavailable: int | str | None = None
    """Pods that may be away, as a number or a share."""


class Autoscaling(ApiModel):
    """Scaling by load."""

    min_replicas: Int32 | None = None
    """Fewest pods."""

    max_replicas: Int32
    """Most pods."""

    target_cpu: Annotated[Int32 | None, Field(alias="targetCPUUtilizationPercentage")] = None
    """CPU use to aim for, in percent of the request."""

    target_memory: Annotated[Int32 | None, Field(alias="targetMemoryUtilizationPercentage")] = None
    """Memory use to aim for, in percent of the request."""


class Storage(ApiModel):
    """A volume that outlives the pods."""

    size: Annotated[int, Field()] | Annotated[str, Field(pattern=QUANTITY)] | None = None
    """Size of the volume; 10Gi when omitted."""

    mount_path: str | None = None
    """Where it is mounted; /.llama when omitted."""


class UserConfig(ApiModel):
    """The server's configuration, in place of the distribution's."""

    config_map_name: str
    """ConfigMap that holds it under the key config.yaml (or run.yaml)."""

    config_map_namespace: str | None = None
    """Namespace of the ConfigMap: only that of the LlamaStackDistribution itself is possible."""


class CaBundle(ApiModel):
    """Certificate authorities that the server trusts."""

    config_map_name: str
    """ConfigMap with PEM certificates."""

    config_map_namespace: str | None = None
    """Namespace of the ConfigMap: only that of the LlamaStackDistribution itself is possible."""

    config_map_keys: Annotated[list[str], Field(max_length=50)] | None = None
    """Keys to take, in this order; ca-bundle.crt when omitted."""


class TlsConfig(ApiModel):
    """TLS of the server's own calls."""

    ca_bundle: CaBundle | None = None
    """Certificate authorities that the server trusts."""


class ExternalProvider(ApiModel):
    """A provider that is installed from an image when the pod starts."""

    provider_id: ProviderId
    """Name of this provider; no two external providers may share one, whatever their API."""

    image: Text
    """Image with /lls-provider/lls-provider-spec.yaml and the provider's wheels."""

    image_pull_policy: Literal["Always", "Never", "IfNotPresent"] = "IfNotPresent"
    """When the image is pulled."""

    config: JsonObject | None = None
    """The provider's own settings, passed on as they are. No secrets: name a variable as ${env.NAME} and set it
    from a Secret under containerSpec.env."""


Providers = Annotated[list[ExternalProvider], ATOMIC]


class ExternalProviders(ApiModel):
    """Providers that are added to the distribution, by API. They are installed in this order of APIs, and within
    one in the order of its list."""

    inference: Providers = Field(default_factory=list)
    """Providers of the API inference."""

    safety: Providers = Field(default_factory=list)
    """Providers of the API safety."""

    agents: Providers = Field(default_factory=list)
    """Providers of the API agents."""

    vector_io: Providers = Field(default_factory=list)
    """Providers of the API vector_io."""

    dataset_io: Providers = Field(default_factory=list)
    """Providers of the API datasetio."""

    scoring: Providers = Field(default_factory=list)
    """Providers of the API scoring."""

    eval: Providers = Field(default_factory=list)
    """Providers of the API eval."""

    tool_runtime: Providers = Field(default_factory=list)
    """Providers of the API tool_runtime."""

    post_training: Providers = Field(default_factory=list)
    """Providers of the API post_training."""

    responses: Providers = Field(default_factory=list)
    """Providers of the API responses."""

    batches: Providers = Field(default_factory=list)
    """Providers of the API batches."""

    files: Providers = Field(default_factory=list)
    """Providers of the API files."""

    file_processors: Providers = Field(default_factory=list)
    """Providers of the API file_processors."""


class ModelDeploymentRef(ApiModel):
    """A ModelDeployment of this namespace that serves as an inference provider."""

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=formats.DNS_LABEL)]
    """Name of the ModelDeployment."""

    provider_id: ProviderId | None = None
    """Name of the provider; the ModelDeployment's name when omitted."""

    config: JsonObject | None = None
    """Further settings of the provider. base_url is refused: it follows the ModelDeployment."""

    @property
    def id(self) -> str:
        """The provider's name."""
        return self.provider_id or self.name


class ServerSpec(ApiModel):
    """The server."""

    distribution: Distribution
    """Which distribution image runs."""

    container_spec: ContainerSpec = Field(default_factory=ContainerSpec)
    """The server's container."""

    workers: Annotated[int, Field(ge=1)] | None = None
    """Worker processes; also the CPU request."""

    pod_overrides: PodOverrides | None = None
    """Changes to the pod."""

    pod_disruption_budget: PodDisruptionBudget | None = None
    """How many pods may be away at a time."""

    topology_spread_constraints: list[JsonObject] | None = None
    """How the pods are spread over the cluster."""

    autoscaling: Autoscaling | None = None
    """Scaling by load; spec.replicas is left alone then."""

    storage: Storage | None = None
    """A volume that outlives the pods; without it they have an empty one."""

    user_config: UserConfig | None = None
    """The server's configuration, in place of the distribution's."""

    tls_config: TlsConfig | None = None
    """TLS of the server's own calls."""

    external_providers: ExternalProviders | None = None
    """Providers that are added to the distribution when it is deployed."""

    model_deployments: Annotated[
        list[ModelDeploymentRef],
        Field(
            max_length=16,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = Field(default_factory=list)
    """ModelDeployments of this namespace that serve as inference providers."""


class Spec(ApiModel):
    """What is asked for."""

    replicas: Int32 = 1
    """Number of pods, where autoscaling is not set."""

    server: ServerSpec
    """The server."""

    network: NetworkSpec | None = None
    """How the server is reached."""

    def providers(self) -> list[tuple[str, ExternalProvider]]:
        """The external providers in the order of installation, each with its section."""
        given = self.server.external_providers
        if given is None:
            return []
        sections = type(given).model_fields
        return [(str(field.alias), item) for name, field in sections.items() for item in getattr(given, name)]
