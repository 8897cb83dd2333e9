"""ModelDeployment: the typed spec (contract §2).

These models are the one source: the CRD, its defaults and its documentation are generated from them.
Reading ignores unknown fields, because the API server prunes or keeps them by the CRD.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from kubefoundry_sdk._api import engine_args, extra_args, formats
from kubefoundry_sdk._api.fields import ALWAYS_THERE, MAX_INT32, Count, ItemsLike
from kubefoundry_sdk._api.fields import ApiModel as ApiModel
from kubefoundry_sdk._api.fields import Quantity as Quantity
from kubefoundry_sdk._api.model_storage import ModelStorage
from kubefoundry_sdk._api.pod_spec import EngineContainer, PodSpec
from kubefoundry_sdk._api.pods import EnvVar, Toleration

Engine = Literal["vllm", "sglang", "trtllm", "llamacpp"]
ServingMode = Literal["aggregated", "disaggregated"]
Source = Literal["huggingface", "custom"]
Phase = Literal["Pending", "Deploying", "Running", "Failed", "Terminating"]

Form = TypeVar("Form", bound=BaseModel)

LabelValue = Annotated[str, Field(max_length=63, pattern=formats.LABEL_VALUE)]


class ModelSpec(ApiModel):
    """The model to serve."""

    id: Annotated[str, Field(max_length=253, pattern=formats.MODEL_ID)] | None = None
    """Model on the Hugging Face hub, for example meta-llama/Llama-3.1-8B-Instruct. Required if source is
    huggingface, not needed if source is custom. Changing it recreates the deployment."""

    served_name: Annotated[str, Field(max_length=253, pattern=formats.SERVED_NAME)] | None = None
    """Name under which the API serves the model. Defaults to the last part of the id. Ignored if source is
    custom, because the container names the model itself."""

    source: Source = "huggingface"
    """Source of the model: huggingface (the hub) or custom (included in the image). Changing it
    recreates the deployment."""

    storage: ModelStorage = Field(default_factory=ModelStorage)
    """Claims for weights and caches, and offline mode."""


class ProviderSpec(ApiModel):
    """The provider that runs the model."""

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=formats.DNS_LABEL)] | None = None
    """Name of a registered provider (`kubectl get inferenceproviderconfigs`). If omitted, the selector chooses one
    by the providers' rules. Changing it recreates the deployment."""

    overrides: Annotated[dict[str, Any], Field(max_length=64)] | None = None
    """Settings specific to this provider; see its documentation. Requires `name`. Unknown keys cause a warning,
    and values of the wrong type are reported in the condition ProviderCompatible. The entire spec may have at most
    64 levels of nesting and 128 KiB as JSON."""


class EngineSpec(ApiModel):
    """The inference engine and its settings."""

    type: Engine | None = None
    """Engine that runs the model: vllm, sglang, trtllm or llamacpp. If omitted, the first of these that fits is
    selected together with the provider, and stays (status.provider.engine). Changing it recreates the deployment."""

    context_length: Annotated[int, Field(ge=1, le=MAX_INT32)] | None = None
    """Maximum context length in tokens, prompt and response together. Defaults to the model's own."""

    trust_remote_code: bool = False
    """Whether the engine may run code from the model's repository."""

    args: Annotated[dict[str, Annotated[str, Field(max_length=16384)]], Field(max_length=128)] = Field(
        default_factory=dict
    )
    """Additional flags of the engine, by name without leading dashes. "" and "true" produce the bare flag. "false"
    produces --no-FLAG if the engine has such flags, otherwise nothing. Any other value produces --FLAG VALUE. Flags
    that contradict another field, or that set the same option twice, are rejected."""

    extra_args: Annotated[
        list[Annotated[str, Field(max_length=16384)]],
        Field(max_length=128, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ] = Field(default_factory=list)
    """Entries for the end of the engine's command line, each passed on as it is: repeated flags, and flags with
    several values (["--lora-modules", "a=org/a", "b=org/b"]). A flag that a field or `args` sets is rejected."""

    @field_validator("args")
    @classmethod
    def _by_one_name_each(cls, args: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        """Return the flags by one name each for providers; the stored spec stays as the user wrote it."""
        return engine_args.effective(info.data.get("type"), args)

    @property
    def extra_flags(self) -> dict[str, str]:
        """The flags in `extraArgs`: the canonical name with dashes, and the flag as written."""
        return extra_args.flags(self.type, self.extra_args)


class ServingSpec(ApiModel):
    """How requests are served."""

    mode: ServingMode = "aggregated"
    """How the work is split: aggregated (each replica does all of it) or disaggregated (prefill and decode run as
    separate components). Changing it recreates the deployment."""


class GpuSpec(ApiModel):
    """GPUs of one replica."""

    count: Count = 0
    """Number of GPUs."""

    type: Annotated[str, Field(max_length=253, pattern=formats.EXTENDED_RESOURCE)] = "nvidia.com/gpu"
    """Resource name of the GPUs, for example nvidia.com/gpu or amd.com/gpu."""


class ComponentScaling(ApiModel):
    """Size of one component in disaggregated mode."""

    replicas: Count = 1
    """Number of replicas of this component."""

    gpu: GpuSpec | None = None
    """GPUs of each replica of this component. Required in disaggregated mode, with a count above 0."""

    memory: Quantity | None = None
    """Memory of each replica of this component, request and limit, for example "64Gi". Required in disaggregated
    mode."""


class ScalingSpec(ApiModel):
    """Number of replicas."""

    replicas: Count = 1
    """Number of replicas in aggregated mode. 0 stops serving. Must be 1 in disaggregated mode, where prefill and
    decode set their own replicas."""

    prefill: ComponentScaling | None = None
    """The component that processes prompts in disaggregated mode. Ignored in aggregated mode."""

    decode: ComponentScaling | None = None
    """The component that generates tokens in disaggregated mode. Ignored in aggregated mode."""


class ResourcesSpec(ApiModel):
    """Resources of one replica in aggregated mode."""

    gpu: GpuSpec | None = None
    """GPUs of each replica. Defaults to none."""

    memory: Quantity | None = None
    """Memory of each replica, request and limit, for example "32Gi"."""

    cpu: Quantity | None = None
    """CPU request of each replica in cores, for example "4" or "500m"."""

    cpu_limit: Quantity | None = None
    """The most CPU that each replica may use, at least `cpu`. Defaults to no limit. Namespaces whose ResourceQuota
    counts `limits.cpu` need it. Frontends and Ray heads then get their request as limit."""


class PodMetadata(ApiModel):
    """Labels and annotations of pods."""

    labels: Annotated[dict[str, LabelValue], Field(max_length=128)] = Field(default_factory=dict)
    """Labels of the pods. New pods also carry `kubefoundry.ai/modeldeployment`, the name of the ModelDeployment,
    where the provider can set one. The provider rejects labels that it or Kubernetes sets itself."""

    annotations: Annotated[dict[str, Annotated[str, Field(max_length=262144)]], Field(max_length=128)] = (
        Field(default_factory=dict)
    )
    """Annotations of the pods."""


class PodTemplateSpec(ApiModel):
    """Settings of the engine's pods, as in a Kubernetes pod template."""

    metadata: PodMetadata = Field(default_factory=PodMetadata)
    """Labels and annotations of the engine's pods."""

    spec: PodSpec = Field(default_factory=PodSpec)
    """Settings of the engine's pods. Pods that run no engine (a frontend, a Ray head) have them, too, except volumes
    and resource claims."""

    container: EngineContainer = Field(default_factory=EngineContainer)
    """Settings of the container that runs the engine."""


class SecretsSpec(ApiModel):
    """Secrets for the engine."""

    hugging_face_token: (
        Annotated[str, Field(min_length=1, max_length=253, pattern=formats.DNS_SUBDOMAIN)] | None
    ) = None
    """Name of a Secret in the same namespace. Its keys become environment variables of the engine; the key HF_TOKEN
    holds the Hugging Face token."""


class ModelDeploymentSpec(ApiModel):
    """The desired state: which model to serve, and how."""

    model: Annotated[ModelSpec, ALWAYS_THERE] = Field(default_factory=ModelSpec)
    """The model to serve."""

    provider: ProviderSpec | None = None
    """The provider that runs the model. If omitted, the selector chooses one by the providers' rules."""

    engine: Annotated[EngineSpec, ALWAYS_THERE] = Field(default_factory=EngineSpec)
    """The inference engine and its settings."""

    serving: Annotated[ServingSpec, ALWAYS_THERE] = Field(default_factory=ServingSpec)
    """How requests are served."""

    scaling: Annotated[ScalingSpec, ALWAYS_THERE] = Field(default_factory=ScalingSpec)
    """Number of replicas and, in disaggregated mode, the size of the components."""

    resources: Annotated[ResourcesSpec, ALWAYS_THERE] = Field(default_factory=ResourcesSpec)
    """Resources of one replica in aggregated mode. In disaggregated mode, each component sets its own."""

    image: Annotated[str, Field(max_length=1024, pattern=formats.IMAGE)] | None = None
    """Container image of the engine. Defaults to the provider's image for that engine. Required if model.source
    is custom."""

    env: Annotated[
        list[dict[str, Any]],
        ItemsLike(EnvVar),
        Field(
            max_length=256,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = Field(default_factory=list)
    """Environment variables of the engine."""

    pod_template: PodTemplateSpec = Field(default_factory=PodTemplateSpec)
    """Settings of the engine's pods, as in a Kubernetes pod template."""

    secrets: SecretsSpec = Field(default_factory=SecretsSpec)
    """Secrets for the engine."""

    node_selector: Annotated[dict[str, LabelValue], Field(max_length=64)] = Field(default_factory=dict)
    """Labels that a node must have to run the engine's pods."""

    tolerations: Annotated[
        list[dict[str, Any]],
        ItemsLike(Toleration),
        Field(max_length=64, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ] = Field(default_factory=list)
    """Node taints that the engine's pods tolerate."""

    def overrides_as(self, form: type[Form]) -> Form:
        """Return `provider.overrides` in the provider's typed form, with its defaults.

        Raises:
            pydantic.ValidationError: A value has a wrong type. The runtime reports that before it calls a provider.
        """
        return form.model_validate((self.provider and self.provider.overrides) or {})

    @property
    def gpu_count(self) -> int:
        """GPUs a replica in aggregated mode; omitted means 0 (contract §2)."""
        return self.resources.gpu.count if self.resources.gpu else 0

    @property
    def served_name(self) -> str | None:
        """The API-facing model name: stated, else the basename of the id; None for `source: custom`.

        Computed here and never stored (contract §2).
        """
        if self.model.source == "custom":
            return None
        return self.model.served_name or (self.model.id or "").rsplit("/", 1)[-1] or None
