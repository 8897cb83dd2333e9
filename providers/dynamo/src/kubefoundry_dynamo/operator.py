"""Reads the Dynamo operator's Deployment for its release, which determines default images and worker flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubefoundry_dynamo import versions
from kubefoundry_dynamo.versions import OPERATOR_VERSION
from kubefoundry_sdk import Object

DEPLOYMENT: Final = "dynamo-platform-dynamo-operator-controller-manager"
"""Chart `dynamo-operator` in the Helm release `dynamo-platform` (docs/kubernetes/installation_guide.md)."""

NAMESPACE: Final = "dynamo-system"
"""The namespace on the same page."""

LEASE: Final = "dynamo.nvidia.com"
"""The default id of its leader election (chart's operator-config.yaml)."""

MANAGER: Final = "manager"
FLAG: Final = "--operator-version="
"""The operator's container, and the flag with which newer charts set the release (chart's deployment.yaml)."""


def read(deployment: Object) -> Mapping[str, str]:
    """Return the release from the flag or else the image's tag; nothing if neither is MAJOR.MINOR.PATCH."""
    for text in _version_texts(deployment):
        try:
            return {OPERATOR_VERSION: str(versions.parse(text))}
        except ValueError:
            continue
    return {}


def _version_texts(deployment: Object) -> Iterator[str]:
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        if container["name"] != MANAGER:
            continue
        for argument in container.get("args") or ():
            if argument.startswith(FLAG):
                yield argument.removeprefix(FLAG)
        image = container.get("image", "").partition("@")[0]
        yield image.rpartition("/")[2].partition(":")[2].removeprefix("v")
