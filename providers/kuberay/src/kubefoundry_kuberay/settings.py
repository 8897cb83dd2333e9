"""An administrator's settings for this provider: images, and the Ray version inside them."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import Final

from kubefoundry_sdk.flags import flag, mirror
from kubefoundry_sdk.pod import in_registry, is_nvidia

DEFAULT_IMAGE: Final = "rayproject/ray-llm:2.56.0-py312-cu130"
"""Ray with vLLM for engine `vllm` (sources §4.5: the newest that KubeRay's samples name)."""

OLDEST_RAY: Final = (2, 52)
"""First Ray release whose `ray.serve.llm` accepts everything that we render, under the same names.

Read from ray/llm/_internal/serve of Ray 2.46, 2.49, 2.52, 2.54, 2.56 and 2.60.
"""

Version = tuple[int, ...]

_RAY_IMAGE: Final = re.compile(r"(^|/)ray(-[a-z0-9-]+)?:(?P<version>\d+\.\d+\.\d+)(?![0-9])")
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True, slots=True)
class Settings:
    """The administrator's settings.

    Attributes:
        default_image: The image if `spec.image` is empty.
        ray_version: The Ray version of images whose tag does not show it; None means unknown.
        mirror: The registry with a copy of Ray's own image; empty for Ray's.
    """

    default_image: str = DEFAULT_IMAGE
    ray_version: str | None = None
    mirror: str = ""

    def is_for(self, gpu_type: str, stated: str | None) -> bool:
        """Check whether the image fits a GPU of that type: Ray's own default image is built for NVIDIA's CUDA."""
        return bool(stated) or self.default_image != DEFAULT_IMAGE or is_nvidia(gpu_type)

    def image(self, stated: str | None) -> str:
        """Return the image of the spec, else the administrator's default."""
        is_own = self.default_image == DEFAULT_IMAGE
        return stated or in_registry(self.default_image, self.mirror if is_own else "")

    def ray_version_of(self, image: str) -> str | None:
        """Return the Ray version in the image's tag if the repository is called ray or ray-…, else the setting."""
        match = _RAY_IMAGE.search(image)
        return match["version"] if match else self.ray_version


def as_version(text: str) -> Version:
    """Return `2.56.0` as (2, 56, 0)."""
    return tuple(int(part) for part in text.split("."))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that only this provider has."""
    flag(
        parser,
        "--ray-version",
        "Ray version, as 2.56.0, of images whose tag does not say it",
        read=_ray_version,
    )
    mirror(parser)


def from_arguments(namespace: argparse.Namespace) -> Settings:
    """Return the settings from parsed flags. Raise ValueError for an engine that KubeRay does not run."""
    images: dict[str, str] = namespace.default_images
    unknown = sorted(set(images) - {"vllm"})
    if unknown:
        raise ValueError(f"--default-image {unknown[0]}=…: KubeRay runs engine vllm only; remove the flag")
    return Settings(images.get("vllm", DEFAULT_IMAGE), namespace.ray_version, namespace.mirror)


def _ray_version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a Ray version such as 2.56.0")
    return text
