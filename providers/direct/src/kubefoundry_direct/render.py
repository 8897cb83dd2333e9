"""A ModelDeployment as a Deployment and a Service."""

from __future__ import annotations

from typing import Any

from kubefoundry_direct import pod, rollout
from kubefoundry_direct.names import PORT, PORT_NAME, SELECTED_BY, service
from kubefoundry_direct.overrides import overrides_of
from kubefoundry_direct.settings import Settings
from kubefoundry_sdk import Deployment, Object, Rendered, Schema
from kubefoundry_sdk.pod import storage_notes

SLACK = 600
"""Seconds beyond the time to load after which a rollout without progress counts as failed."""


def render(deployment: Deployment, schema: Schema, settings: Settings) -> Rendered:
    """Return the Deployment and its Service. Call it only if `supports` found no problem."""
    spec = deployment.spec
    image = settings.image(spec) or ""
    overrides = overrides_of(spec)
    labels = {SELECTED_BY: deployment.name}
    content: dict[str, Any] = {
        "replicas": spec.scaling.replicas,
        "selector": {"matchLabels": labels},
        "strategy": rollout.strategy(spec),
        "progressDeadlineSeconds": overrides.startup_seconds + overrides.drain_seconds + SLACK,
        "revisionHistoryLimit": 2,
        "template": pod.template(deployment, image, settings.user),
    }
    main = {
        "apiVersion": schema.api_version,
        "kind": "Deployment",
        "metadata": {"name": deployment.name},
        "spec": content,
    }
    notes = (*rollout.notes(spec), *storage_notes(spec, spec.scaling.replicas))
    return Rendered(main, (_service(deployment, labels),), notes=notes, image=image)


def _service(deployment: Deployment, labels: dict[str, str]) -> Object:
    port = {"name": PORT_NAME, "port": PORT, "targetPort": PORT_NAME, "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service(deployment.name)},
        "spec": {"selector": labels, "ports": [port]},
    }
