"""Names and ports that pods, Service and status share."""

from __future__ import annotations

from typing import Final

PORT: Final = 8000
"""The port of every engine, and of the Service."""
PORT_NAME: Final = "http"

OWN_KEYS: Final = "kubefoundry.ai/"
"""The prefix of KubeFoundry's labels and annotations."""

SELECTED_BY: Final = f"{OWN_KEYS}model-deployment"
"""Label of the pods with the ModelDeployment's name. Service and Deployment select only by this label. It never
changes, because a Deployment's selector is immutable. Pods also have the label that all providers set
(`with_model_label`)."""

OPTIONS_ANNOTATION: Final = f"{OWN_KEYS}engine-options"
"""Annotation of the pods with the options that the engine reads from a file. It is an annotation because a change of
an annotation replaces the pods."""


def service(deployment: str) -> str:
    """Return the name of the Service of a ModelDeployment.

    It is not the ModelDeployment's own name: KAITO creates a Service of that name, which would conflict during a
    hand-over.
    """
    return f"{deployment}-server"


CONTAINER: Final = "engine"
