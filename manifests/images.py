"""Writes images.txt: every image that a component's manifest or a default of ours names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

import kubefoundry_direct.settings as direct
import kubefoundry_dynamo.settings as dynamo
import kubefoundry_kaito.settings as kaito
import kubefoundry_kuberay.settings as kuberay
from kubefoundry_dynamo.versions import STORAGE_V1BETA1_LINE
from kubefoundry_llamastack import distribution

HERE: Final = Path(__file__).parent
LIST: Final = HERE / "images.txt"
HEADER: Final = """\
# Every image that KubeFoundry can make a cluster pull for objects that name none, and what it is for.
# Generated from manifests/ and the defaults of the providers and of llamastack: make manifests
"""


def text() -> str:
    """Return the content of the file."""
    lines = [f"{image} {purpose}" for image, purpose in sorted(set(images()))]
    return HEADER + "\n".join(lines) + "\n"


def images() -> Iterator[tuple[str, str]]:
    """Yield each image and what it is for."""
    for path in HERE.rglob("*.yaml"):
        yield from _of_manifest(path)
    for engine, image in direct.ON_NVIDIA.items():
        yield image, f"provider direct, engine {engine} on NVIDIA GPUs"
    for engine, image in direct.ON_CPU.items():
        yield image, f"provider direct, engine {engine} on CPUs"
    for engine, repository in dynamo.REPOSITORIES.items():
        # The tag is the release of the installed operator.
        yield (
            f"{repository}:{STORAGE_V1BETA1_LINE}",
            f"provider dynamo, engine {engine}, with Dynamo {STORAGE_V1BETA1_LINE}",
        )
    for engine, image in kaito.DEFAULT_IMAGES.items():
        yield image, f"provider kaito, engine {engine}"
    yield kuberay.DEFAULT_IMAGE, "provider kuberay, engine vllm"
    for name, image in distribution.IMAGES.items():
        yield image, f"llamastack, distribution {name}"


def _of_manifest(path: Path) -> Iterator[tuple[str, str]]:
    for document in yaml.safe_load_all(path.read_text()):
        if document and document["kind"] == "Deployment":
            for container in document["spec"]["template"]["spec"]["containers"]:
                yield container["image"], container["name"].replace("provider-", "provider ")


if __name__ == "__main__":
    LIST.write_text(text())
