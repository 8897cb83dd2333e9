"""The values of the chart kubefoundry: names, types, defaults and descriptions (`documents.py` writes the files)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from kubefoundry_sdk._api.formats import CA_BUNDLE, CA_BUNDLE_LENGTHS, ENDPOINT_URL, NO_PROXY
from kubefoundry_sdk._api.images import REGISTRY

OUR_LABELS: Final = (
    r"^(app\.kubernetes\.io/(name|part-of)|rbac\.authorization\.k8s\.io/.*|kubefoundry\.ai/protected)$"
)
"""Labels that the manifests set. Selectors, NetworkPolicies, aggregated roles and core depend on them."""

Labels = Annotated[dict[str, str], Field(json_schema_extra={"patternProperties": {OUR_LABELS: False}})]
Text = Annotated[str, Field(min_length=1)]
Registry = Annotated[str, Field(pattern=REGISTRY)]


class Closed(BaseModel):
    """An object whose fields are all known: an unknown field is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PullSecret(Closed):
    """A Secret in the namespace of the release."""

    name: Text


class Images(Closed):
    """Where the images of KubeFoundry are."""

    registry: Registry = Field(
        "kubefoundry", description="Prefix of each image, as in registry.example.com/kubefoundry."
    )
    mirror: Literal[""] | Registry = Field(
        "",
        description="Registry with copies of all images of `kubefoundry images`, the default images of engines and "
        "of LlamaStack distributions included. It replaces registry.",
    )
    tag: str = Field("", description="Tag of each image. Empty for the version of the chart.")
    pullPolicy: Literal["", "Always", "IfNotPresent", "Never"] = Field(
        "", description="Empty for the default of Kubernetes."
    )
    pullSecrets: list[PullSecret] = Field([], description="Secrets with credentials for the registry.")


class Image(Closed):
    """The image of one component."""

    tag: str = Field("", description="Empty for image.tag.")
    digest: str = Field(
        "",
        description="Digest, sha256:…, which takes precedence over the tag.",
        pattern="^(sha256:[0-9a-f]{64})?$",
    )


class Toleration(Closed):
    """A toleration of a pod."""

    key: str | None = None
    operator: Literal["Exists", "Equal"] | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    tolerationSeconds: int | None = None


class Variable(Closed):
    """A variable of a process, with a value or a source as in a Pod."""

    name: Text
    value: str | None = None
    valueFrom: dict[str, Any] | None = None


Quantity = str | int | float


class Resources(Closed):
    """Requests and limits of a container."""

    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}


class Process(Closed):
    """The fields of each component. `resources` come from the component's manifest."""

    enabled: bool = Field(True, description="Install this component.")
    image: Image = Field(Image(), description="Image of this component.")
    resources: Resources = Field(Resources(), description="Requests and limits.")
    extraArgs: list[Text] = Field([], description="Further flags, for example --workers=16.")


class Replicated(Process):
    """A component with leader election."""

    replicas: Annotated[int, Field(ge=0)] | None = Field(
        1, description="One replica works, the others wait to take over. null leaves the field to others."
    )


class Issuer(Closed):
    """An issuer of cert-manager."""

    name: str = Field("", description="Name of the issuer.")
    kind: Literal["Issuer", "ClusterIssuer"] = Field("Issuer", description="Kind of the issuer.")
    group: str = Field("cert-manager.io", description="API group of the issuer.")


class Certificate(Closed):
    """The certificate of the admission webhooks."""

    source: Literal["core", "cert-manager", "secret"] = Field(
        "core",
        description="core: core creates and renews it. cert-manager: the chart requests it from issuer. secret: an "
        "existing Secret of type kubernetes.io/tls that also has ca.crt.",
    )
    secretName: str = Field("", description="Name of the existing Secret, for source secret.")
    issuer: Issuer = Field(Issuer(), description="For source cert-manager. Its Secrets must contain ca.crt.")


class Core(Replicated):
    """Core."""

    certificate: Certificate = Field(Certificate(), description="Certificate of the admission webhooks.")


DefaultImage = Annotated[str, Field(pattern=r"^[^,\s]+$")]
"""An image. The flag joins several with commas."""

_DEFAULT_IMAGES: Final[Any] = Field(
    {}, description="Image by engine, for models that name no image. Empty for those of the release."
)


class Kaito(Replicated):
    """The KAITO provider."""

    defaultImages: dict[Literal["vllm", "llamacpp"], DefaultImage] = _DEFAULT_IMAGES


class Dynamo(Replicated):
    """The Dynamo provider."""

    defaultImages: dict[Literal["vllm", "sglang", "trtllm"], DefaultImage] = _DEFAULT_IMAGES


class KubeRay(Replicated):
    """The KubeRay provider."""

    defaultImages: dict[Literal["vllm"], DefaultImage] = _DEFAULT_IMAGES


class Direct(Replicated):
    """The direct provider."""

    defaultImages: dict[Literal["vllm", "sglang", "trtllm", "llamacpp"], DefaultImage] = _DEFAULT_IMAGES


class Providers(Closed):
    """The providers."""

    kaito: Kaito = Field(Kaito(), description="Deploys models as KAITO Workspaces.")
    dynamo: Dynamo = Field(Dynamo(), description="Deploys models as NVIDIA Dynamo DynamoGraphDeployments.")
    kuberay: KubeRay = Field(KubeRay(), description="Deploys models as KubeRay RayServices.")
    direct: Direct = Field(Direct(), description="Deploys models as Deployments of the engine's own server.")


Url = Annotated[str, Field(pattern=ENDPOINT_URL)]
"""A URL without a user and a password."""
_LENGTHS: Final = {"allOf": [{"pattern": CA_BUNDLE_LENGTHS}]}
CaBundle = Annotated[str, Field(pattern=CA_BUNDLE, json_schema_extra=_LENGTHS)]


class Models(Closed):
    """Settings of the pods of models that do not set them in `env`."""

    hfEndpoint: Literal[""] | Url = Field(
        "", description="HF_ENDPOINT: URL of a mirror of the Hugging Face hub."
    )
    httpProxy: Literal[""] | Url = Field("", description="HTTP_PROXY.")
    httpsProxy: Literal[""] | Url = Field("", description="HTTPS_PROXY.")
    noProxy: Literal[""] | Annotated[str, Field(pattern=NO_PROXY)] = Field(
        "",
        description="NO_PROXY, separated by commas. Empty for addresses of the cluster by name, if there is a proxy.",
    )
    caBundle: Literal[""] | CaBundle = Field(
        "",
        description="CONFIGMAP/KEY, in the namespace of each model, with the authorities that its pods trust.",
    )


class Dashboard(Process):
    """The page. It has one replica, because sessions are in its memory."""

    enabled: bool = Field(False, description="Install this component.")
    hostNames: list[Text] = Field([], description="Host names of the page, as its Ingress has them.")
    allowWrites: bool = Field(False, description="Let viewers act, with their own permissions.")


class LlamaStack(Replicated):
    """The operator of LlamaStackDistributions."""

    enabled: bool = Field(
        False, description="Install this component. Its CRD is llamaStack in kubefoundry-crds."
    )
    modelDeployments: bool = Field(
        True, description="Let it read ModelDeployments, to use models as providers."
    )
    openshiftAnyuid: bool = Field(
        False, description="Let it bind the OpenShift role anyuid, and start it with --openshift-anyuid."
    )


class Rbac(Closed):
    """Roles of users. The components' own roles are always installed."""

    userRoles: bool = Field(
        True, description="Add ModelDeployments and their upstream objects to the roles view, edit and admin."
    )
    providersViewForAll: bool = Field(
        True, description="Let every user list providers and read CRDs, which explain and plan need."
    )


class Switch(Closed):
    """Something that is not installed by default."""

    enabled: bool = Field(False, description="Install it.")


class PodDisruptionBudgets(Closed):
    """The PodDisruptionBudgets."""

    enabled: bool = Field(True, description="Install one for each component with leader election.")


Cidr = Annotated[str, Field(pattern=r"^[0-9a-fA-F.:]+/[0-9]{1,3}$")]


class NetworkPolicies(Switch):
    """The NetworkPolicies: only namespaces that scrape reach the metrics, and only the webhooks are open."""

    webhookFrom: list[Cidr] = Field([], description="Addresses of the API server. Empty for any address.")


class ProviderPolicy(Switch):
    """The policy about who may use which provider."""

    recordCreator: bool = Field(
        True, description="Record who creates a model, which automatic selection needs."
    )


CEILING = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)?(gpus|replicas|memory)$"
"""Keys of the ConfigMap of ceilings, for all namespaces or for one."""


class Ceilings(Switch):
    """The policy about the size of a model."""

    limits: dict[str, str] = Field(
        {"gpus": "64", "replicas": "32", "memory": "2Ti"},
        description="Limits of each model: gpus and memory of a replica, and replicas. NAMESPACE.gpus counts for one "
        "namespace.",
        json_schema_extra={"patternProperties": {CEILING: {"type": "string"}}, "additionalProperties": False},
    )


class PodMonitor(Switch):
    """The PodMonitor of the Prometheus operator."""

    interval: str = Field("", description="Time between two scrapes, such as 30s. Empty for the default.")
    labels: Labels = Field({}, description="Labels by which your Prometheus selects PodMonitors.")


class EnginePodMonitor(Switch):
    """The PodMonitor of engines."""

    labels: Labels = Field({}, description="Labels by which your Prometheus selects PodMonitors.")


class Alerts(Switch):
    """The PrometheusRule."""

    labels: Labels = Field({}, description="Labels by which your Prometheus selects PrometheusRules.")
    runbookUrl: str = Field(
        "",
        description="Where you publish docs/runbooks.md. Each alert then has a runbook_url, with its section. Empty "
        "for no link.",
    )


class GrafanaDashboards(Switch):
    """The ConfigMaps of the dashboards."""

    labels: Labels = Field(
        {}, description="Further labels, if your Grafana selects dashboards by other labels."
    )


class Values(Closed):
    """The values of the chart kubefoundry."""

    image: Images = Field(Images(), description="The images of all components.")
    logFormat: Literal["json", "text"] = Field("json", description="Log format of the controllers.")
    env: list[Variable] = Field(
        [], description="Variables of every process, for example OTEL_EXPORTER_OTLP_ENDPOINT (monitoring.md)."
    )
    labels: Labels = Field({}, description="Labels of every object. Pods have podLabels.")
    annotations: dict[str, str] = Field(
        {}, description="Annotations of every object. Pods have podAnnotations."
    )
    podLabels: Labels = Field({}, description="Labels of every pod.")
    podAnnotations: dict[str, str] = Field({}, description="Annotations of every pod.")
    priorityClassName: str = Field("", description="PriorityClass of every pod.")
    nodeSelector: dict[str, str] = Field({}, description="Node labels that every pod needs.")
    tolerations: list[Toleration] = Field([], description="Tolerations of every pod.")
    core: Core = Field(Core(), description="Admission webhooks, validation and cleanup.")
    selector: Replicated = Field(Replicated(), description="Selects a provider for models that name none.")
    providers: Providers = Field(
        Providers(), description="Providers. Each works with its own inference system."
    )
    models: Models = Field(
        Models(),
        description="Pods of models: a mirror of the hub, a proxy, certificate authorities (network.md).",
    )
    dashboard: Dashboard = Field(Dashboard(), description="The page for a whole cluster.")
    llamaStack: LlamaStack = Field(LlamaStack(), description="Runs LlamaStackDistributions.")
    rbac: Rbac = Field(Rbac(), description="Roles of users. The components' own roles are always installed.")
    podDisruptionBudgets: PodDisruptionBudgets = Field(
        PodDisruptionBudgets(), description="One PodDisruptionBudget for each component but the page."
    )
    networkPolicies: NetworkPolicies = Field(
        NetworkPolicies(),
        description="Close every port but those for metrics and for webhooks, also the page's. The ports for "
        "metrics are open only to namespaces with the label kubefoundry.ai/scrapes=true.",
    )
    podMonitor: PodMonitor = Field(
        PodMonitor(), description="Let the Prometheus operator scrape every process but the page."
    )
    enginePodMonitor: EnginePodMonitor = Field(
        EnginePodMonitor(),
        description="Let the Prometheus operator scrape the engines of provider direct, in all namespaces.",
    )
    alerts: Alerts = Field(
        Alerts(), description="Alerts for the Prometheus operator. docs/runbooks.md has a section for each."
    )
    grafanaDashboards: GrafanaDashboards = Field(
        GrafanaDashboards(),
        description="Dashboards for Grafana, as ConfigMaps with the label grafana_dashboard, for its sidecar.",
    )
    secretCheck: Switch = Field(
        Switch(),
        description="Let the providers of the release check whether a Secret or the ConfigMap of models.caBundle "
        "exists. They can then read every Secret and ConfigMap.",
    )
    storageClaims: Switch = Field(Switch(), description="Let core create claims of models (storage.md).")
    configMapPolicy: Switch = Field(
        Switch(),
        description="Restrict the KAITO provider to its own ConfigMaps. Needs Kubernetes 1.30 or newer.",
    )
    providerPolicy: ProviderPolicy = Field(
        ProviderPolicy(),
        description="Let only those use a provider who have the permission (policy.md). Needs Kubernetes 1.30 or "
        "newer.",
    )
    ceilings: Ceilings = Field(
        Ceilings(), description="Limit the size of each model (policy.md). Needs Kubernetes 1.30 or newer."
    )
    secretPolicy: Switch = Field(
        Switch(),
        description="Let authors name only Secrets that they may get, and ServiceAccounts that they may impersonate "
        "(policy.md). Needs Kubernetes 1.30 or newer.",
    )
    directPolicy: Switch = Field(
        Switch(),
        description="Restrict provider direct to its own Deployments and Services. Needs Kubernetes 1.30 or newer.",
    )
