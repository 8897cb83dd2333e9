"""Decides by the release of the API server how services of providers run."""

from __future__ import annotations

from typing import Final

from kubefoundry_llamastack.render.request import Settings
from kubefoundry_sdk._api.server_release import Release

NATIVE: Final = (1, 29)
"""From here on the API server keeps `restartPolicy` of an init container by default."""

NATIVE_ON_ALL_NODES: Final = (1, 32)
"""Kubelets may be three minor releases older. One that ignores the field waits forever for the container to end."""

CONTAINER_METRICS: Final = (1, 30)
"""From here on an autoscaler can measure a single container in every cluster."""


def has_native_sidecars(settings: Settings, release: Release) -> bool:
    """Check whether services start as init containers that restart."""
    return settings.native_sidecars == "true" or (
        settings.native_sidecars == "auto" and release >= NATIVE_ON_ALL_NODES
    )


def refusal(settings: Settings, release: Release) -> str | None:
    """Return why the flag cannot be honoured, None if it can."""
    if settings.native_sidecars != "true" or release >= NATIVE:
        return None
    return (
        f"the operator has the flag --native-sidecars=true, but Kubernetes {release[0]}.{release[1]} restarts no "
        "init containers; have an administrator set it to auto"
    )
