"""An administrator's settings: the default images, and the Dynamo version of images whose tag does not show it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kubefoundry_dynamo import versions
from kubefoundry_dynamo.versions import Version
from kubefoundry_sdk.flags import flag, mirror
from kubefoundry_sdk.pod import in_registry

REPOSITORIES: Final[Mapping[str, str]] = {
    "vllm": "nvcr.io/nvidia/ai-dynamo/vllm-runtime",
    "sglang": "nvcr.io/nvidia/ai-dynamo/sglang-runtime",
    "trtllm": "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime",
}
"""Repositories of the default images by engine (sources §2.8); the tag is the operator's release line."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The administrator's settings.

    Attributes:
        default_images: Complete image references by engine, instead of the table's.
        runtime_version: The Dynamo version of images whose tag does not show it; None for the operator's release
            line.
        mirror: The registry with copies of the table's images; empty for theirs.
    """

    default_images: Mapping[str, str] = field(default_factory=dict)
    runtime_version: Version | None = None
    mirror: str = ""

    def default_image(self, engine: str, line: Version) -> str:
        """Return the image of `engine` for a ModelDeployment that names none.

        Runtime and operator should have the same minor version (sources §2.8), so the image is of the operator's
        release line.
        """
        return self.default_images.get(engine) or in_registry(f"{REPOSITORIES[engine]}:{line}", self.mirror)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that only this provider has."""
    flag(
        parser,
        "--runtime-version",
        "MAJOR.MINOR.PATCH of Dynamo in images whose tag names none; default: as the installed CRD",
        read=_version,
    )
    mirror(parser)


def from_arguments(arguments: argparse.Namespace) -> Settings:
    """Return the settings from parsed flags.

    Raise ValueError if --default-image names an engine that Dynamo does not run.
    """
    for engine in arguments.default_images:
        if engine not in REPOSITORIES:
            raise ValueError(
                f"--default-image {engine}=…: Dynamo runs {', '.join(sorted(REPOSITORIES))} only"
            )
    return Settings(arguments.default_images, arguments.runtime_version, arguments.mirror)


def _version(text: str) -> Version:
    try:
        return versions.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
