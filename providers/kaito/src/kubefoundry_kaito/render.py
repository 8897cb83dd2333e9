"""Renders a ModelDeployment as a Workspace.

A Workspace has no `spec`: `resource` and `inference` are top-level fields of the kind.
"""

from __future__ import annotations

from typing import Final

from kubefoundry_kaito import nodes, preset, template
from kubefoundry_kaito.probe import WORKSPACES
from kubefoundry_kaito.settings import Settings, is_preset
from kubefoundry_sdk import Deployment, Object, Rendered, Schema

MODEL_SOURCE_LABEL: Final = "kubefoundry.ai/model-source"
"""On Workspaces: `spec.model.source` (contract §7)."""


def render(deployment: Deployment, schema: Schema, settings: Settings) -> Rendered:
    """Return the Workspace, and for a preset its ConfigMap. Call it only if `supports` found no problem."""
    workspace: Object = {
        "apiVersion": schema.api_version,
        "kind": WORKSPACES.kind,
        "metadata": {
            "name": deployment.name,
            "labels": {MODEL_SOURCE_LABEL: deployment.spec.model.source},
        },
        "resource": nodes.resource(deployment, schema, settings),
    }
    spec = deployment.spec
    if is_preset(spec, settings):
        workspace["metadata"]["annotations"] = dict(preset.RUNTIME_ANNOTATIONS)
        workspace["inference"] = preset.inference(deployment, schema)
        return Rendered(workspace, helpers=(preset.config(deployment),), notes=preset.notes(spec))
    image = settings.image(spec)
    workspace["inference"] = template.inference(deployment, image or "")
    return Rendered(workspace, notes=template.notes(spec), image=image)
