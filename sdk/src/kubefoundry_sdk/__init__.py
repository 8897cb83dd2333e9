"""The SDK of KubeFoundry: everything you need to write a provider for another inference system.

    from kubefoundry_sdk import Capabilities, Deployment, Provider, Rendered, Schema, UpstreamKind, run

Describe your provider as a `Provider` with four pure functions, then call `run`. docs/writing-a-provider.md walks you
through one, and says how these names may change: within a minor version they keep their meaning. Everything else in
this package is private by convention and may move or change in any release. `__version__` is the installed version.

Each name is imported on first use, so importing this package alone costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
"""Type checkers treat this as true. Importing it from `typing` would cost more than the rest of this module."""

if TYPE_CHECKING:
    from typing import Any, Final

    from kubefoundry_sdk._api.engine_args import Parallel, parallel
    from kubefoundry_sdk._api.kinds import Object
    from kubefoundry_sdk._api.modeldeployment import ComponentScaling, GpuSpec, ModelDeploymentSpec
    from kubefoundry_sdk._api.pod_status import LAST_WORDS
    from kubefoundry_sdk._api.untrusted import mapping
    from kubefoundry_sdk._provider.as_started import from_flags
    from kubefoundry_sdk._provider.command_line import Derived, argv, contradictions, literal
    from kubefoundry_sdk._provider.contract import (
        Capabilities,
        Deployment,
        Document,
        Endpoint,
        NotReadable,
        Observation,
        ObservedPhase,
        Provider,
        ReadyReason,
        Rendered,
        Replicas,
        SelectionRule,
    )
    from kubefoundry_sdk._provider.embedding import Settings, connect, serve
    from kubefoundry_sdk._provider.installation import manifest
    from kubefoundry_sdk._provider.pod_resources import (
        aggregated_resources,
        container_resources,
        secret_env_from,
    )
    from kubefoundry_sdk._provider.reconcile.compatibility import supports
    from kubefoundry_sdk._provider.refused_fields import refused_fields
    from kubefoundry_sdk._provider.run import run
    from kubefoundry_sdk._provider.upstream_fields import Fields, by_fields, declared
    from kubefoundry_sdk._provider.upstream_kind import Operator, Schema, UnsupportedSchema, UpstreamKind
    from kubefoundry_sdk._provider.upstream_pods import Pods
    from kubefoundry_sdk._provider.upstream_status import (
        UpstreamCondition,
        count,
        text,
        upstream_conditions,
    )
    from kubefoundry_sdk._runtime.options import duration, flag

__all__ = [
    "LAST_WORDS",
    "Capabilities",
    "ComponentScaling",
    "Deployment",
    "Derived",
    "Document",
    "Endpoint",
    "Fields",
    "GpuSpec",
    "ModelDeploymentSpec",
    "NotReadable",
    "Object",
    "Observation",
    "ObservedPhase",
    "Operator",
    "Parallel",
    "Pods",
    "Provider",
    "ReadyReason",
    "Rendered",
    "Replicas",
    "Schema",
    "SelectionRule",
    "Settings",
    "UnsupportedSchema",
    "UpstreamCondition",
    "UpstreamKind",
    "aggregated_resources",
    "argv",
    "by_fields",
    "connect",
    "container_resources",
    "contradictions",
    "count",
    "declared",
    "duration",
    "flag",
    "from_flags",
    "literal",
    "manifest",
    "mapping",
    "parallel",
    "refused_fields",
    "run",
    "secret_env_from",
    "serve",
    "supports",
    "text",
    "upstream_conditions",
]

_ELSEWHERE: Final = {
    "from_flags": "kubefoundry_sdk._provider.as_started",
    "Settings": "kubefoundry_sdk._provider.embedding",
    "connect": "kubefoundry_sdk._provider.embedding",
    "serve": "kubefoundry_sdk._provider.embedding",
    "supports": "kubefoundry_sdk._provider.reconcile.compatibility",
    "manifest": "kubefoundry_sdk._provider.installation",
    "Derived": "kubefoundry_sdk._provider.command_line",
    "Fields": "kubefoundry_sdk._provider.upstream_fields",
    "LAST_WORDS": "kubefoundry_sdk._api.pod_status",
    "UpstreamCondition": "kubefoundry_sdk._provider.upstream_status",
    "aggregated_resources": "kubefoundry_sdk._provider.pod_resources",
    "argv": "kubefoundry_sdk._provider.command_line",
    "by_fields": "kubefoundry_sdk._provider.upstream_fields",
    "container_resources": "kubefoundry_sdk._provider.pod_resources",
    "contradictions": "kubefoundry_sdk._provider.command_line",
    "count": "kubefoundry_sdk._provider.upstream_status",
    "declared": "kubefoundry_sdk._provider.upstream_fields",
    "literal": "kubefoundry_sdk._provider.command_line",
    "mapping": "kubefoundry_sdk._api.untrusted",
    "refused_fields": "kubefoundry_sdk._provider.refused_fields",
    "secret_env_from": "kubefoundry_sdk._provider.pod_resources",
    "text": "kubefoundry_sdk._provider.upstream_status",
    "upstream_conditions": "kubefoundry_sdk._provider.upstream_status",
    "ComponentScaling": "kubefoundry_sdk._api.modeldeployment",
    "GpuSpec": "kubefoundry_sdk._api.modeldeployment",
    "ModelDeploymentSpec": "kubefoundry_sdk._api.modeldeployment",
    "Object": "kubefoundry_sdk._api.kinds",
    "Parallel": "kubefoundry_sdk._api.engine_args",
    "parallel": "kubefoundry_sdk._api.engine_args",
    "duration": "kubefoundry_sdk._runtime.options",
    "flag": "kubefoundry_sdk._runtime.options",
    "run": "kubefoundry_sdk._provider.run",
    "Operator": "kubefoundry_sdk._provider.upstream_kind",
    "Pods": "kubefoundry_sdk._provider.upstream_pods",
    "Schema": "kubefoundry_sdk._provider.upstream_kind",
    "UnsupportedSchema": "kubefoundry_sdk._provider.upstream_kind",
    "UpstreamKind": "kubefoundry_sdk._provider.upstream_kind",
}
"""The modules of the names that are not in `kubefoundry_sdk._provider.contract`."""


def __getattr__(name: str) -> Any:
    """Import a public name, or read the version. Raises AttributeError for any other name."""
    if name == "__version__":
        from importlib.metadata import version

        return version("kubefoundry-sdk")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_ELSEWHERE.get(name, "kubefoundry_sdk._provider.contract")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
