"""vLLM's options (vLLM 0.6 and later; the OpenAI server's command line)."""

from __future__ import annotations

from typing import Final

from kubefoundry_kaito.options import Derived
from kubefoundry_sdk.api.modeldeployment import ModelDeploymentSpec

PORT: Final = 5000
"""Where KAITO's Service sends traffic (pkg/workspace/manifests/manifests.go @v0.12.0)."""

SERVICE_TARGET: Final = "KAITO's Service"

PARALLEL_SIZES: Final = frozenset(
    {"tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "tp", "pp", "dp"}
)


def derived(spec: ModelDeploymentSpec) -> list[Derived]:
    """The options that fields of the spec give, for a preset and for an image alike.

    `--model`, because it is right for both entry points of vLLM's images: the API server module takes no
    positional model, and `vllm serve` turns the option into one.
    """
    options = [Derived("port", str(PORT), SERVICE_TARGET)]
    if spec.served_name is not None and spec.model.id is not None:
        options = [
            Derived("model", spec.model.id, "model.id"),
            Derived("served-model-name", spec.served_name, "model.servedName"),
            *options,
        ]
    if spec.engine.context_length is not None:
        options.append(Derived("max-model-len", str(spec.engine.context_length), "engine.contextLength"))
    trust = "true" if spec.engine.trust_remote_code else "false"
    options.append(Derived("trust-remote-code", trust, "engine.trustRemoteCode", switch=True))
    return options


def parallelism(spec: ModelDeploymentSpec) -> list[Derived]:
    """Tensor parallelism over the GPUs of the pod, unless `engine.args` states any parallel size (contract §2)."""
    stated = {flag.replace("_", "-") for flag in spec.engine.args} & PARALLEL_SIZES
    if stated or spec.gpu_count < 2:
        return []
    return [Derived("tensor-parallel-size", str(spec.gpu_count), "resources.gpu.count")]
