"""Default images for ModelDeployments that name none."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kubefoundry_direct.overrides import CLUSTER, LARGEST_ID, Cluster
from kubefoundry_sdk.flags import flag, mirror
from kubefoundry_sdk.pod import in_registry, is_nvidia
from kubefoundry_sdk.spec import ModelDeploymentSpec

ON_NVIDIA: Final[Mapping[str, str]] = {
    "vllm": "vllm/vllm-openai:v0.18.0",
    "sglang": "lmsysorg/sglang:v0.5.18",
    "trtllm": "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc20",
    "llamacpp": "ghcr.io/ggml-org/llama.cpp:server-cuda12-b9603",
}
"""Each project's own image for NVIDIA GPUs. TensorRT-LLM's is the first release line whose trtllm-serve accepts
`--served_model_name` (NVIDIA/TensorRT-LLM#11711)."""

ON_CPU: Final[Mapping[str, str]] = {"llamacpp": "ghcr.io/ggml-org/llama.cpp:server-b9603"}


DEFAULT_USER: Final = 1000


@dataclass(frozen=True, slots=True)
class Settings:
    """The administrator's settings.

    Attributes:
        images: Image by engine, for any hardware.
        mirror: The registry with copies of the engines' own images; empty for theirs.
        user: The user and group of the servers, if a model states none.
    """

    images: Mapping[str, str] = field(default_factory=dict)
    mirror: str = ""
    user: int | Cluster = DEFAULT_USER

    def image(self, spec: ModelDeploymentSpec) -> str | None:
        """Return the image of the spec, else the administrator's, else the engine's own for that hardware.

        Return None if there is none.
        """
        engine = spec.engine.type or ""
        if image := spec.image or self.images.get(engine):
            return image
        own = _own(engine, spec)
        return in_registry(own, self.mirror) if own else None


def _own(engine: str, spec: ModelDeploymentSpec) -> str | None:
    if not spec.gpu_count:
        return ON_CPU.get(engine)
    assert spec.resources.gpu is not None
    return ON_NVIDIA.get(engine) if is_nvidia(spec.resources.gpu.type) else None


def from_arguments(arguments: Namespace) -> Settings:
    """Return the settings from parsed flags. Raise ValueError for an unknown engine."""
    unknown = sorted(set(arguments.default_images) - set(ON_NVIDIA))
    if unknown:
        engines = ", ".join(sorted(ON_NVIDIA))
        raise ValueError(f"--default-image {unknown[0]}=…: the engines are {engines}; correct the flag")
    user = DEFAULT_USER if arguments.run_as_user is None else arguments.run_as_user
    return Settings(dict(arguments.default_images), arguments.mirror, user)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags of this provider."""
    mirror(parser)
    flag(
        parser,
        "--run-as-user",
        f"id of the user and group of the servers, if a model states none, {DEFAULT_USER} if unset; cluster leaves "
        "both to the cluster, as OpenShift wants it",
        read=_user,
    )


def _user(text: str) -> int | Cluster:
    if text == CLUSTER:
        return CLUSTER
    if not text.isascii() or not text.isdecimal() or int(text) > LARGEST_ID:
        raise ArgumentTypeError(f"{text!r} is neither {CLUSTER} nor an id from 0 to {LARGEST_ID}")
    return int(text)
