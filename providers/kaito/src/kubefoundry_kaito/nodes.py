"""The `resource` section of a Workspace: which nodes it may use, or which nodes KAITO has to create."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kubefoundry_kaito.overrides import overrides_of
from kubefoundry_kaito.probe import INSTANCE_TYPE_DEFAULT
from kubefoundry_kaito.settings import Provisioning, Settings, is_preset
from kubefoundry_sdk import Deployment, Schema
from kubefoundry_sdk.spec import ModelDeploymentSpec

ANY_NODE: Final = {"kubernetes.io/os": "linux"}

NVIDIA_NODE: Final = {**ANY_NODE, "nvidia.com/gpu.present": "true"}
"""KAITO refuses a preset if a selected node lacks NVIDIA's GPU labels (GetGPUConfigFromNodeLabels @v0.12.0)."""

NODE_OF: Final = "kubefoundry.ai/model-deployment"
"""Label of nodes that KAITO creates. KAITO copies the selector's labels to them, and no node may match two models."""


def resource(deployment: Deployment, schema: Schema, settings: Settings) -> dict[str, Any]:
    """Return the section `resource`.

    Its `count` is 1: it counts nodes of one instance, and is immutable (seen on KAITO 0.12).
    """
    overrides = overrides_of(deployment.spec)
    mode = settings.mode(schema)
    section: dict[str, Any] = {
        "count": 1,
        "labelSelector": {"matchLabels": _labels(deployment, mode, settings)},
    }
    if mode == "auto":
        section["instanceType"] = instance_type(deployment.spec, settings)
    if overrides.preferred_nodes:
        section["preferredNodes"] = list(overrides.preferred_nodes)
    return section


def instance_type(spec: ModelDeploymentSpec, settings: Settings) -> str | None:
    """Return the instance type in mode `auto`: the user's, else the administrator's for GPU or CPU models."""
    by_default = settings.gpu_instance_type if spec.gpu_count else settings.cpu_instance_type
    return overrides_of(spec).instance_type or by_default


def problems(spec: ModelDeploymentSpec, schema: Schema | None, settings: Settings) -> Iterator[str]:
    """Yield reasons why KAITO could not get nodes: each provisioning mode refuses a field that the other needs."""
    mode = settings.mode(schema)
    if mode == "auto" and instance_type(spec, settings) is None:
        flag = "--kaito-gpu-instance-type" if spec.gpu_count else "--kaito-cpu-instance-type"
        yield (
            "KAITO creates nodes in this cluster and needs an instance type: "
            f"set provider.overrides.instanceType, or start the KAITO provider with {flag}"
        )
    if mode == "byo" and overrides_of(spec).instance_type is not None:
        yield (
            "KAITO creates no nodes in this cluster, so it cannot honour provider.overrides.instanceType: "
            "remove it and use nodeSelector"
        )
    if schema is not None:
        by_name = INSTANCE_TYPE_DEFAULT in schema.features
        yield from _node_names(overrides_of(spec).preferred_nodes, mode, by_name=by_name)


def _node_names(names: Sequence[str], mode: Provisioning, *, by_name: bool) -> Iterator[str]:
    """Yield the problem if nodes are named for a KAITO that takes none by name, or not named for one that must."""
    if mode == "byo" and by_name and not names:
        yield (
            "KAITO before 0.8 takes existing nodes by name only: "
            "set provider.overrides.preferredNodes, or upgrade KAITO"
        )
    if names and not by_name:
        yield (
            "KAITO from 0.8 on chooses nodes by labels, not by provider.overrides.preferredNodes: "
            "remove it and use nodeSelector"
        )


def _labels(deployment: Deployment, mode: Provisioning, settings: Settings) -> dict[str, str]:
    if deployment.spec.node_selector:
        return dict(deployment.spec.node_selector)
    if mode == "auto":
        return {NODE_OF: deployment.name}
    return dict(NVIDIA_NODE if is_preset(deployment.spec, settings) else ANY_NODE)
