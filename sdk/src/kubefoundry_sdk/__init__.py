"""The SDK of KubeFoundry: all that a provider for another inference system needs.

    from kubefoundry_sdk import Capabilities, Deployment, Provider, Rendered, Schema, UpstreamKind, run

A provider describes itself as a `Provider` with four pure functions and calls `run`; docs/writing-a-provider.md walks
through one. These names keep their meaning within a minor version. Everything else in this package is private by
convention: it may move or change in any release.

Each name is imported when it is first used, so importing this package alone costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
"""As type checkers understand it: importing `typing` for it would cost more than all the rest of this module."""

if TYPE_CHECKING:
    from typing import Any, Final

    from kubefoundry_sdk.api.kinds import Object
    from kubefoundry_sdk.api.modeldeployment import ComponentScaling, GpuSpec, ModelDeploymentSpec
    from kubefoundry_sdk.provider.contract import (
        Capabilities,
        Deployment,
        Document,
        Endpoint,
        Observation,
        ObservedPhase,
        Operator,
        Pods,
        Provider,
        ReadyReason,
        Rendered,
        Replicas,
        Schema,
        SelectionRule,
        UnsupportedSchema,
        UpstreamKind,
    )
    from kubefoundry_sdk.provider.run import run
    from kubefoundry_sdk.runtime.options import flag

__all__ = [
    "Capabilities",
    "ComponentScaling",
    "Deployment",
    "Document",
    "Endpoint",
    "GpuSpec",
    "ModelDeploymentSpec",
    "Object",
    "Observation",
    "ObservedPhase",
    "Operator",
    "Pods",
    "Provider",
    "ReadyReason",
    "Rendered",
    "Replicas",
    "Schema",
    "SelectionRule",
    "UnsupportedSchema",
    "UpstreamKind",
    "flag",
    "run",
]

_ELSEWHERE: Final = {
    "ComponentScaling": "kubefoundry_sdk.api.modeldeployment",
    "GpuSpec": "kubefoundry_sdk.api.modeldeployment",
    "ModelDeploymentSpec": "kubefoundry_sdk.api.modeldeployment",
    "Object": "kubefoundry_sdk.api.kinds",
    "flag": "kubefoundry_sdk.runtime.options",
    "run": "kubefoundry_sdk.provider.run",
}
"""The module of each name that is not part of `kubefoundry_sdk.provider.contract`."""


def __getattr__(name: str) -> Any:
    """Imports a public name. Raises AttributeError for any other."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_ELSEWHERE.get(name, "kubefoundry_sdk.provider.contract")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
