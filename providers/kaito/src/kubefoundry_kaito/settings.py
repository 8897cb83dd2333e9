"""An administrator's settings for this provider: how KAITO gets nodes, and images."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, cast, get_args

from kubefoundry_sdk import Schema
from kubefoundry_sdk.flags import flag
from kubefoundry_sdk.spec import ModelDeploymentSpec

Provisioning = Literal["byo", "auto"]
"""byo: pods run on existing nodes. auto: KAITO creates nodes of an instance type (node auto-provisioning).

KAITO's operator has a flag for the mode, which its CRD does not show (KAITO api/v1beta1/workspace_validation.go
@v0.12.0). Each mode refuses fields that the other needs, so the provider has a flag for the mode, or reads it from
the operator's Deployment.
"""

PROVISIONING: Final = "provisioning"
"""The name of this setting among those read from the Deployment."""

DEFAULT_IMAGES: Final[Mapping[str, str]] = {}
"""Engine -> image. Empty by design: vllm without an image is a KAITO preset, llamacpp has no default."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The instance types apply in mode `auto`, to ModelDeployments that state none.

    provisioning: None uses the mode read from KAITO's Deployment.
    """

    provisioning: Provisioning | None = None
    gpu_instance_type: str | None = None
    cpu_instance_type: str | None = None
    images: Mapping[str, str] = field(default_factory=lambda: DEFAULT_IMAGES)

    def mode(self, schema: Schema | None) -> Provisioning:
        """Return the mode as set, else as read; byo if neither is known, because auto buys nodes."""
        if self.provisioning:
            return self.provisioning
        return "auto" if schema and schema.discovered.get(PROVISIONING) == "auto" else "byo"

    def image(self, spec: ModelDeploymentSpec) -> str | None:
        """Return the image of the spec or the administrator; None means a preset, for vllm."""
        return spec.image or self.images.get(spec.engine.type or "")


def is_preset(spec: ModelDeploymentSpec, settings: Settings) -> bool:
    """Check whether the deployment is a KAITO preset: vLLM without its own image. Others are pod templates."""
    return spec.engine.type == "vllm" and settings.image(spec) is None


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags that only this provider has. The SDK adds `--default-image` and those of every process."""
    flag(
        parser,
        "--kaito-provisioning",
        "how KAITO gets nodes: byo (no node auto-provisioning) or auto; default: as its Deployment is started",
        read=_provisioning,
    )
    flag(parser, "--kaito-gpu-instance-type", "instance type of GPU models that state none (mode auto)")
    flag(parser, "--kaito-cpu-instance-type", "instance type of CPU models that state none (mode auto)")


def from_arguments(arguments: Namespace) -> Settings:
    """Return the settings from parsed flags (`add_arguments`, and the SDK's `default_images`)."""
    return Settings(
        provisioning=arguments.kaito_provisioning,
        gpu_instance_type=arguments.kaito_gpu_instance_type or None,
        cpu_instance_type=arguments.kaito_cpu_instance_type or None,
        images={**DEFAULT_IMAGES, **arguments.default_images},
    )


def _provisioning(text: str) -> Provisioning:
    for mode in get_args(Provisioning):
        if text == mode:
            return cast(Provisioning, mode)
    raise ArgumentTypeError(f"{text!r} is neither byo nor auto")
