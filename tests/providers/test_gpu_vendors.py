"""A GPU gets a default image only if the image is built for its vendor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_direct.provider import provider as direct
from kubefoundry_direct.settings import Settings as DirectSettings
from kubefoundry_dynamo.provider import provider as dynamo
from kubefoundry_dynamo.settings import Settings as DynamoSettings
from kubefoundry_kuberay.provider import provider as kuberay
from kubefoundry_kuberay.settings import Settings as KubeRaySettings
from kubefoundry_sdk._provider.contract import Provider
from support.plans import SPEC, deployment

DEFAULTS: Mapping[str, tuple[Provider, Provider]] = {
    "direct": (direct(DirectSettings()), direct(DirectSettings({"vllm": "mine:1"}))),
    "dynamo": (dynamo(DynamoSettings()), dynamo(DynamoSettings({"vllm": "mine:1"}))),
    "kuberay": (kuberay(KubeRaySettings()), kuberay(replace(KubeRaySettings(), default_image="mine:1"))),
}
"""With the provider's own images, and with the administrator's."""
NVIDIA = ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"]
OTHERS = ["amd.com/gpu", "gpu.intel.com/i915", "habana.ai/gaudi", "example.com/nvidia.com"]


def problems(provider: Provider, gpu_type: str, **more: Any) -> list[str]:
    spec = {**SPEC, "resources": {"gpu": {"count": 1, "type": gpu_type}}, **more}
    return [text for text in provider.supports(deployment(spec), None) if "image" in text]


@pytest.mark.parametrize("name", DEFAULTS)
@pytest.mark.parametrize("gpu_type", NVIDIA)
def test_nvidia_gpu_of_any_kind_gets_the_default_image(name: str, gpu_type: str) -> None:
    assert problems(DEFAULTS[name][0], gpu_type) == []


@pytest.mark.parametrize("name", DEFAULTS)
@pytest.mark.parametrize("gpu_type", OTHERS)
def test_gpu_of_another_vendor_gets_no_default_image(name: str, gpu_type: str) -> None:
    own, administrators = DEFAULTS[name]

    (problem,) = problems(own, gpu_type)

    assert problem.endswith(f"has no default image of vllm for {gpu_type}: set image")
    assert problems(own, gpu_type, image="example.com/rocm:1") == []
    assert problems(administrators, gpu_type) == []
