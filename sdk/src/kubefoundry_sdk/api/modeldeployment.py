"""ModelDeployment: the typed spec and status (003 §4.1 with the decisions of contract §2 and §3).

These models are the one source: the CRD, its defaults and its documentation are generated from them.
Reading ignores unknown fields, because the API server prunes or keeps them by the CRD.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Engine = Literal["vllm", "sglang", "trtllm", "llamacpp"]
ServingMode = Literal["aggregated", "disaggregated"]
Source = Literal["huggingface", "custom"]
Phase = Literal["Pending", "Deploying", "Running", "Failed", "Terminating"]

Quantity = int | str


class ApiModel(BaseModel):
    """A part of a resource: camelCase on the wire, immutable in memory, unknown fields ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True, use_attribute_docstrings=True
    )


class ModelSpec(ApiModel):
    id: str | None = None
    served_name: str | None = None
    source: Source = "huggingface"


class ProviderSpec(ApiModel):
    name: str | None = None
    overrides: dict[str, Any] | None = None


class EngineSpec(ApiModel):
    type: Engine | None = None
    context_length: Annotated[int, Field(ge=1)] | None = None
    trust_remote_code: bool = False
    args: dict[str, str] = Field(default_factory=dict)


class ServingSpec(ApiModel):
    mode: ServingMode = "aggregated"


class GpuSpec(ApiModel):
    count: Annotated[int, Field(ge=0)] = 0
    type: str = "nvidia.com/gpu"


class ComponentScaling(ApiModel):
    replicas: Annotated[int, Field(ge=0)] = 1
    gpu: GpuSpec | None = None
    memory: Quantity | None = None


class ScalingSpec(ApiModel):
    replicas: Annotated[int, Field(ge=0)] = 1
    prefill: ComponentScaling | None = None
    decode: ComponentScaling | None = None


class ResourcesSpec(ApiModel):
    gpu: GpuSpec | None = None
    memory: Quantity | None = None
    cpu: Quantity | None = None


class PodMetadata(ApiModel):
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class PodTemplateSpec(ApiModel):
    metadata: PodMetadata = Field(default_factory=PodMetadata)


class SecretsSpec(ApiModel):
    hugging_face_token: str | None = None


class ModelDeploymentSpec(ApiModel):
    model: ModelSpec = Field(default_factory=ModelSpec)
    provider: ProviderSpec | None = None
    engine: EngineSpec = Field(default_factory=EngineSpec)
    serving: ServingSpec = Field(default_factory=ServingSpec)
    scaling: ScalingSpec = Field(default_factory=ScalingSpec)
    resources: ResourcesSpec = Field(default_factory=ResourcesSpec)
    image: str | None = None
    env: list[dict[str, Any]] = Field(default_factory=list)
    pod_template: PodTemplateSpec = Field(default_factory=PodTemplateSpec)
    secrets: SecretsSpec = Field(default_factory=SecretsSpec)
    node_selector: dict[str, str] = Field(default_factory=dict)
    tolerations: list[dict[str, Any]] = Field(default_factory=list)

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
