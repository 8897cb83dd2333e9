"""Names and ports that pods, Service and status agree on."""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk.api.names import PREFIX

PORT: Final = 8000
"""Where every engine listens, and the Service as well."""
PORT_NAME: Final = "http"

MODEL_LABEL: Final = f"{PREFIX}model-deployment"
"""On the pods: the ModelDeployment's name. Service and Deployment select by it alone, and a Deployment's selector
cannot be changed, so it never changes."""

OPTIONS_ANNOTATION: Final = f"{PREFIX}engine-options"
"""On the pods: what the engine reads from a file. An annotation, because a change of it replaces the pods."""


def service(deployment: str) -> str:
    """Of its Service. Not the ModelDeployment's own name: KAITO makes one of that, which a hand-over would meet."""
    return f"{deployment}-server"


CONTAINER: Final = "engine"
