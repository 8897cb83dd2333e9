"""The three standard providers as their InferenceProviderConfigs are in a cluster (README, "Standard rules")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_selector.candidate import Provider, provider

CONFIGS: dict[str, dict[str, Any]] = {
    "kaito": {
        "capabilities": {
            "engines": ["vllm", "llamacpp"],
            "servingModes": ["aggregated"],
            "cpuSupport": True,
            "gpuSupport": True,
        },
        "selectionRules": [
            {
                "condition": "(!has(spec.resources.gpu) || spec.resources.gpu.count == 0)"
                " && spec.serving.mode != 'disaggregated'",
                "priority": 100,
            },
            {"condition": "spec.engine.type == 'llamacpp'", "priority": 100},
        ],
    },
    "dynamo": {
        "capabilities": {
            "engines": ["vllm", "sglang", "trtllm"],
            "servingModes": ["aggregated", "disaggregated"],
            "gpuSupport": True,
        },
        "selectionRules": [
            {"condition": "spec.engine.type == 'sglang'", "priority": 90},
            {"condition": "spec.engine.type == 'trtllm'", "priority": 90},
            {
                "condition": "spec.serving.mode == 'disaggregated'",
                "priority": 80,
                "reason": "mode=disaggregated → dynamo (best disaggregated support)",
            },
            {
                "condition": "has(spec.resources.gpu) && spec.resources.gpu.count > 0",
                "priority": 50,
                "reason": "default → dynamo (GPU inference default)",
            },
        ],
    },
    "kuberay": {
        "capabilities": {
            "engines": ["vllm"],
            "servingModes": ["aggregated", "disaggregated"],
            "gpuSupport": True,
        },
    },
}

MakeConfig = Callable[..., Object]


@pytest.fixture
def standard_configs() -> dict[str, dict[str, Any]]:
    return CONFIGS


@pytest.fixture
def config() -> MakeConfig:
    """An InferenceProviderConfig: of a standard provider, or of another name with the spec given."""

    def make(name: str, spec: dict[str, Any] | None = None, **status: Any) -> Object:
        return {
            "metadata": {"name": name, "generation": 1},
            "spec": spec or CONFIGS[name],
            "status": {"ready": True, "lastHeartbeat": "2026-02-04T10:00:00Z", **status},
        }

    return make


@pytest.fixture
def standard(config: MakeConfig) -> list[Provider]:
    return [provider(config(name)) for name in CONFIGS]
