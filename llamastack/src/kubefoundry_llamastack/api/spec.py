"""The typed spec of a LlamaStackDistribution (sources §5.1; externalProviders: FR-006 to FR-010).

Parts of pods stay JSON: they go into the pod template as they are, and the CRD describes them by the fragments of
Kubernetes' own schema (`core_fragments.json`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from kubefoundry_llamastack.api.fragments import QUANTITY
from kubefoundry_sdk._api import formats
from kubefoundry_sdk._api.fields import ApiModel, Quantity
from llamastack_providers.service import HEALTH_PATH_PATTERN, START_SECONDS

Int32 = Annotated[int, Field()]
Text = Annotated[str, Field(min_length=1)]
JsonObject = dict[str, Any]
ATOMIC = Field(json_schema_extra={"x-kubernetes-list-type": "atomic"})
Port = Annotated[int, Field(ge=1024, le=65535)]
Words = Annotated[list[str], Field(max_length=64)]
PullPolicy = Literal["Always", "Never", "IfNotPresent"]
ProviderId = Annotated[str, Field(min_length=1, max_length=45, pattern=formats.DNS_LABEL)]
"""45 characters: with `external-provider-` before it, it names an init container (sources §5.2)."""


class AllowedFrom(ApiModel):
    """The other namespaces that may reach the server."""

    namespaces: list[str] | None = None
    """Names of namespaces. "*" allows all."""

    labels: list[str] | None = None
    """Label keys. Namespaces with one of these labels may connect, whatever its value."""


class NetworkSpec(ApiModel):
    """Network access to the server."""

    expose_route: bool = False
    """Whether to create an Ingress for the server."""

    allowed_from: AllowedFrom | None = None
    """Who may connect. Enforced if the operator's network policies are enabled."""


class Distribution(ApiModel):
    """The distribution to run: either its name or its image."""

    name: str | None = None
    """Name of a distribution that the operator knows, for example starter."""

    image: str | None = None
    """A container image."""


class ContainerSpec(ApiModel):
    """The server's container."""

    name: str = "llama-stack"
    """Name of the container."""

    port: Int32 | None = None
    """Port that the server listens on. Defaults to 8321."""

    resources: JsonObject | None = None
    """Requests and limits of the container."""

    env: list[JsonObject] | None = None
    """Environment variables. They take precedence over those that the operator sets."""

    command: list[str] | None = None
    """Command, instead of the image's entrypoint."""

    args: list[str] | None = None
    """Arguments of the command."""


class PodOverrides(ApiModel):
    """Changes to the pod."""

    service_account_name: str | None = None
    """ServiceAccount of the pods, instead of the one that the operator creates."""

    termination_grace_period_seconds: Annotated[int, Field(json_schema_extra={"format": "int64"})] | None = (
        None
    )
    """Seconds that the pod has to shut down."""

    volumes: list[JsonObject] | None = None
    """Additional volumes of the pod."""

    volume_mounts: list[JsonObject] | None = None
    """Additional mounts of the server's container."""


class PodDisruptionBudget(ApiModel):
    """The number of pods that may be disrupted at a time."""

    min_available: int | str | None = None
    """Pods that must stay available, as a number or a percentage."""

    max_unavailable: int | str | None = None
    """Pods that may be unavailable, as a number or a percentage."""


class Autoscaling(ApiModel):
    """Scaling by load."""

    min_replicas: Int32 | None = None
    """Minimum number of pods."""

    max_replicas: Int32
    """Maximum number of pods."""

    target_cpu: Annotated[Int32 | None, Field(alias="targetCPUUtilizationPercentage")] = None
    """Target CPU utilization, in percent of the request."""

    target_memory: Annotated[Int32 | None, Field(alias="targetMemoryUtilizationPercentage")] = None
    """Target memory utilization, in percent of the request."""


class Storage(ApiModel):
    """A persistent volume."""

    size: Annotated[int, Field()] | Annotated[str, Field(pattern=QUANTITY)] | None = None
    """Size of the volume. Defaults to 10Gi."""

    mount_path: str | None = None
    """Path of the mount. Defaults to /.llama."""


class UserConfig(ApiModel):
    """The server's configuration, instead of the distribution's."""

    config_map_name: str
    """ConfigMap that holds the configuration under the key config.yaml (or run.yaml)."""

    config_map_namespace: str | None = None
    """Namespace of the ConfigMap: only that of the LlamaStackDistribution itself is possible."""


class CaBundle(ApiModel):
    """Certificate authorities that the server trusts."""

    config_map_name: str
    """ConfigMap with PEM certificates."""

    config_map_namespace: str | None = None
    """Namespace of the ConfigMap: only that of the LlamaStackDistribution itself is possible."""

    config_map_keys: Annotated[list[str], Field(max_length=50)] | None = None
    """Keys to use, in this order. Defaults to ca-bundle.crt."""


class TlsConfig(ApiModel):
    """TLS of the server's outgoing connections."""

    ca_bundle: CaBundle | None = None
    """Certificate authorities that the server trusts."""


class ServiceHealth(ApiModel):
    """How the kubelet checks a service."""

    port: Port | None = None
    """Port of the listener for health checks, on all addresses. Defaults to 18500 plus the service's position,
    with mode Deployment to 8081."""

    path: Annotated[str, Field(max_length=253, pattern=HEALTH_PATH_PATTERN)] | None = None
    """Path whose answer to GET is 200 while the service accepts requests. Defaults to /healthz.

    Printable ASCII without spaces. Write other characters in percent-encoding.
    """

    exec: Annotated[list[Text], Field(min_length=1, max_length=16)] | None = None
    """Command that ends with exit code 0 while the service accepts requests, instead of port and path."""

    start_seconds: Annotated[int, Field(ge=1, le=3600)] = START_SECONDS
    """Seconds that the service has to start."""


class ProviderService(ApiModel):
    """A process of its own that a provider calls.

    The provider itself is installed into the server like any other.
    """

    mode: Literal["Sidecar", "Deployment"] = "Sidecar"
    """Where it runs. Sidecar: in a container of each pod of the server. Deployment: in pods of its own."""

    image: Text | None = None
    """Image of the service. Defaults to the provider's image."""

    image_pull_policy: PullPolicy = "IfNotPresent"
    """When to pull the image."""

    command: Words | None = None
    """Command, instead of the image's entrypoint."""

    args: Words | None = None
    """Arguments of the command."""

    transport: Literal["UnixSocket", "TCP"] | None = None
    """How the provider reaches the service. Defaults to UnixSocket, a file that only the server and this service
    have. With TCP it listens on the pod's loopback address, where every container of the pod can connect. With mode
    Deployment only TCP is possible."""

    port: Port | None = None
    """Port for requests over TCP. Defaults to 18400 plus the service's position, with mode Deployment to 8080."""

    health: ServiceHealth = Field(default_factory=ServiceHealth)
    """How the kubelet checks the service."""

    required: bool = True
    """Whether the server waits for the service to start, and gets no requests while the service is unhealthy. If
    false, it gets none only while the service's container does not run, because Kubernetes counts every container.
    With mode Deployment, the server waits for it only before it first uses the service."""

    env: list[JsonObject] | None = None
    """Environment variables of the service alone. Names that begin with LLS_PROVIDER_ are the operator's."""

    resources: JsonObject | None = None
    """Requests and limits of the container. Defaults to requests of 100m CPU and 128Mi memory."""

    scratch: Quantity | None = None
    """Size limit of a volume at /tmp. With it, the rest of the file system is read-only."""

    replicas: Annotated[int, Field(ge=0, le=100)] | None = None
    """Number of pods with mode Deployment. Defaults to 1."""

    autoscaling: Autoscaling | None = None
    """Scaling by load with mode Deployment, instead of replicas."""

    service_account_name: Annotated[str, Field(max_length=253, pattern=formats.DNS_SUBDOMAIN)] | None = None
    """ServiceAccount of the pods with mode Deployment, instead of the one that the operator creates. Its token is
    mounted unless the ServiceAccount forbids it."""

    egress: Annotated[list[JsonObject], Field(max_length=16)] | None = None
    """Egress rules of the NetworkPolicy with mode Deployment, in addition to one for DNS. Without any, the service
    can connect to nothing else."""


class ExternalProvider(ApiModel):
    """A provider that an init container installs from an image."""

    provider_id: ProviderId
    """Id of this provider. Must be unique among all external providers, across APIs."""

    image: Text
    """Image with /lls-provider/lls-provider-spec.yaml and the provider's wheels."""

    image_pull_policy: PullPolicy = "IfNotPresent"
    """When to pull the image."""

    service: ProviderService | None = None
    """A process of its own that the provider calls. Requires the operator's flag --provider-services."""

    config: JsonObject | None = None
    """The provider's settings, passed on unchanged. Do not put secrets here: refer to a variable as ${env.NAME} and
    set it from a Secret under containerSpec.env."""


Providers = Annotated[list[ExternalProvider], ATOMIC]


class ExternalProviders(ApiModel):
    """Providers to add to the distribution, by API.

    They are installed in this order of APIs, and within an API in the order of its list.
    """

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
    """Id of the provider. Defaults to the ModelDeployment's name."""

    config: JsonObject | None = None
    """Additional settings of the provider. base_url is rejected, because it follows the ModelDeployment."""

    @property
    def id(self) -> str:
        """Return the provider id, by default the ModelDeployment's name."""
        return self.provider_id or self.name


class ServerSpec(ApiModel):
    """The server."""

    distribution: Distribution
    """The distribution to run: either its name or its image."""

    container_spec: ContainerSpec = Field(default_factory=ContainerSpec)
    """The server's container."""

    workers: Annotated[int, Field(ge=1)] | None = None
    """Number of worker processes. Also sets the CPU request."""

    pod_overrides: PodOverrides | None = None
    """Changes to the pod."""

    pod_disruption_budget: PodDisruptionBudget | None = None
    """How many pods may be disrupted at a time."""

    topology_spread_constraints: list[JsonObject] | None = None
    """How to spread the pods across the cluster."""

    autoscaling: Autoscaling | None = None
    """Scaling by load. If set, spec.replicas is ignored."""

    storage: Storage | None = None
    """A persistent volume. If omitted, the pods get an empty volume."""

    user_config: UserConfig | None = None
    """The server's configuration, instead of the distribution's."""

    tls_config: TlsConfig | None = None
    """TLS of the server's outgoing connections."""

    external_providers: ExternalProviders | None = None
    """Providers to add to the distribution at deploy time."""

    model_deployments: Annotated[
        list[ModelDeploymentRef],
        Field(
            max_length=16,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = Field(default_factory=list)
    """ModelDeployments of this namespace that serve as inference providers."""


class Spec(ApiModel):
    """The desired state."""

    replicas: Int32 = 1
    """Number of pods, unless autoscaling is set."""

    server: ServerSpec
    """The server."""

    network: NetworkSpec | None = None
    """Network access to the server."""

    def providers(self) -> list[tuple[str, ExternalProvider]]:
        """Return the external providers in the order of installation, each with its section."""
        external = self.server.external_providers
        if external is None:
            return []
        sections = type(external).model_fields
        return [
            (str(field.alias), item) for name, field in sections.items() for item in getattr(external, name)
        ]
