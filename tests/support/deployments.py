"""Small valid ModelDeployments for tests."""

from __future__ import annotations

import copy
from typing import Any

from kubefoundry_sdk._api.names import API_VERSION, MODEL_DEPLOYMENT

GPU: dict[str, Any] = {
    "model": {"id": "org/model"},
    "engine": {"type": "vllm", "trustRemoteCode": True},
    "resources": {"gpu": {"count": 1}},
}
"""vLLM on one GPU. Every provider supports it."""

CPU: dict[str, Any] = {
    "model": {"id": "org/model-gguf"},
    "engine": {"type": "llamacpp"},
    "image": "example.com/llama-cpp:1.0.0",
    "resources": {"memory": "8Gi", "cpu": "4"},
}
"""llama.cpp without a GPU."""

DISAGGREGATED: dict[str, Any] = {
    "model": {"id": "org/model"},
    "engine": {"type": "vllm"},
    "serving": {"mode": "disaggregated"},
    "scaling": {
        "prefill": {"replicas": 1, "gpu": {"count": 1}, "memory": "16Gi"},
        "decode": {"replicas": 2, "gpu": {"count": 1}, "memory": "16Gi"},
    },
}
"""Separate prefill and decode."""


def model_deployment(
    name: str, namespace: str, spec: dict[str, Any], *, provider: str | None = None, **metadata: Any
) -> dict[str, Any]:
    """Return a ModelDeployment to create. `provider` is the provider that its spec names."""
    full = copy.deepcopy(spec)
    if provider:
        full["provider"] = {**full.get("provider", {}), "name": provider}
    return {
        "apiVersion": API_VERSION,
        "kind": MODEL_DEPLOYMENT,
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": full,
    }
