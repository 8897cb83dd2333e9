"""vLLM's options (vLLM 0.6 and later; the OpenAI server's command line)."""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk.engine import (
    TENSOR_PARALLEL,
    Derived,
    loader,
    model_location,
    parallel,
    states_tensor_parallelism,
)
from kubefoundry_sdk.spec import ModelDeploymentSpec

PORT: Final = 5000
"""Where KAITO's Service sends traffic (pkg/workspace/manifests/manifests.go @v0.12.0)."""

SERVICE_TARGET: Final = "KAITO's Service"

ELSEWHERE: Final = ("host", "uds", "headless", "ssl-certfile", "ssl-keyfile")
"""Flags that move the server from the address that KAITO's Service uses."""


def derived(spec: ModelDeploymentSpec) -> list[Derived]:
    """Return the options that fields of the spec set, for presets and images alike.

    The model is `--model`, because it works with both entry points of vLLM's images: the API server module takes no
    positional model, and `vllm serve` turns the option into one.
    """
    options = [Derived("port", str(PORT), SERVICE_TARGET)]
    if spec.served_name is not None and spec.model.id is not None:
        source = "model.storage.uri" if spec.model.storage.uri else "model.id"
        options = [
            Derived("model", model_location(spec), source),
            Derived("served-model-name", spec.served_name, "model.servedName"),
            *loader(spec),
            *options,
        ]
    if spec.engine.context_length is not None:
        options.append(Derived("max-model-len", str(spec.engine.context_length), "engine.contextLength"))
    trust = "true" if spec.engine.trust_remote_code else "false"
    options.append(Derived("trust-remote-code", trust, "engine.trustRemoteCode", switch=True))
    return options


def parallelism(spec: ModelDeploymentSpec) -> list[Derived]:
    """Return tensor parallelism over the GPUs that other sizes leave, unless `engine.args` sets it (contract §2)."""
    args = spec.engine.args
    tensor = parallel("vllm", args, spec.gpu_count).tensor
    if states_tensor_parallelism(args) or tensor < 2:
        return []
    return [Derived(TENSOR_PARALLEL, str(tensor), "resources.gpu.count")]
