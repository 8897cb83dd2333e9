"""Names and ports that pods, Service and status share."""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk._api.names import PREFIX

PORT: Final = 8000
"""The port of every engine, and of the Service."""
PORT_NAME: Final = "http"

SELECTED_BY: Final = f"{PREFIX}model-deployment"
"""Label of the pods with the ModelDeployment's name. Service and Deployment select only by this label. It never
changes, because a Deployment's selector is immutable. Pods also have the label that all providers set
(`MODEL_LABEL`)."""

OPTIONS_ANNOTATION: Final = f"{PREFIX}engine-options"
"""Annotation of the pods with the options that the engine reads from a file. It is an annotation because a change of
an annotation replaces the pods."""


def service(deployment: str) -> str:
    """Return the name of the Service of a ModelDeployment.

    It is not the ModelDeployment's own name: KAITO creates a Service of that name, which would conflict during a
    hand-over.
    """
    return f"{deployment}-server"


CONTAINER: Final = "engine"
