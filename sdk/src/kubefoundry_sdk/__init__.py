"""The SDK of KubeFoundry: everything you need to write a provider for another inference system.

    from kubefoundry_sdk import Capabilities, Deployment, Provider, Rendered, Schema, UpstreamKind, run

Describe your provider as a `Provider` with four pure functions, then call `run`. The functions have building blocks
in `kubefoundry_sdk.crd` (`probe`), `.spec`, `.engine` and `.pod` (`supports` and `render`), `.status` (`observe`),
`.read_back` and `.flags`. `.testing` is for tests, `.kopf` for operators in kopf, `.selector` for selectors.

docs/writing-a-provider.md walks you through a provider, and says how these names may change: within a minor version
they keep their meaning. Everything else in this package is private and may move or change in any release.
`__version__` is the installed version.

Each name is imported on first use, so importing this package alone costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
"""Type checkers treat this as true. Importing it from `typing` would cost more than the rest of this module."""

if TYPE_CHECKING:
    from typing import Any, Final

    from kubefoundry_sdk._api.kinds import Object
    from kubefoundry_sdk._cluster.client import Client
    from kubefoundry_sdk._cluster.credentials import NoCredentials
    from kubefoundry_sdk._provider.as_started import from_flags
    from kubefoundry_sdk._provider.contract import (
        Capabilities,
        Deployment,
        Document,
        Endpoint,
        HelperKind,
        NotReadable,
        Observation,
        ObservedPhase,
        PodDefaults,
        Propagation,
        Provider,
        ReadyReason,
        Rendered,
        Replicas,
        SelectionRule,
    )
    from kubefoundry_sdk._provider.embedding import Settings, connect, serve
    from kubefoundry_sdk._provider.installation import manifest
    from kubefoundry_sdk._provider.run import run
    from kubefoundry_sdk._provider.upstream_kind import Operator, Schema, UnsupportedSchema, UpstreamKind
    from kubefoundry_sdk._provider.upstream_pods import Pods
    from kubefoundry_sdk._runtime.start import CannotStart

    # names that moved, see _MOVED
    from kubefoundry_sdk.crd import Fields as Fields
    from kubefoundry_sdk.crd import by_fields as by_fields
    from kubefoundry_sdk.crd import declared as declared
    from kubefoundry_sdk.engine import Derived as Derived
    from kubefoundry_sdk.engine import Parallel as Parallel
    from kubefoundry_sdk.engine import argv as argv
    from kubefoundry_sdk.engine import contradictions as contradictions
    from kubefoundry_sdk.engine import literal as literal
    from kubefoundry_sdk.engine import parallel as parallel
    from kubefoundry_sdk.flags import duration as duration
    from kubefoundry_sdk.flags import flag as flag
    from kubefoundry_sdk.pod import LAST_WORDS as LAST_WORDS
    from kubefoundry_sdk.pod import aggregated_resources as aggregated_resources
    from kubefoundry_sdk.pod import container_resources as container_resources
    from kubefoundry_sdk.pod import secret_env_from as secret_env_from
    from kubefoundry_sdk.spec import ComponentScaling as ComponentScaling
    from kubefoundry_sdk.spec import GpuSpec as GpuSpec
    from kubefoundry_sdk.spec import ModelDeploymentSpec as ModelDeploymentSpec
    from kubefoundry_sdk.spec import incompatibilities
    from kubefoundry_sdk.spec import refused_fields as refused_fields
    from kubefoundry_sdk.status import UpstreamCondition as UpstreamCondition
    from kubefoundry_sdk.status import count as count
    from kubefoundry_sdk.status import mapping as mapping
    from kubefoundry_sdk.status import text as text
    from kubefoundry_sdk.status import upstream_conditions as upstream_conditions

    supports = incompatibilities

__all__ = [
    "CannotStart",
    "Capabilities",
    "Client",
    "Deployment",
    "Document",
    "Endpoint",
    "HelperKind",
    "NoCredentials",
    "NotReadable",
    "Object",
    "Observation",
    "ObservedPhase",
    "Operator",
    "PodDefaults",
    "Pods",
    "Propagation",
    "Provider",
    "ReadyReason",
    "Rendered",
    "Replicas",
    "Schema",
    "SelectionRule",
    "Settings",
    "UnsupportedSchema",
    "UpstreamKind",
    "connect",
    "from_flags",
    "manifest",
    "run",
    "serve",
]

_SOURCES: Final = {
    "CannotStart": "_runtime.start",
    "Capabilities": "_provider.contract",
    "Client": "_cluster.client",
    "Deployment": "_provider.contract",
    "Document": "_provider.contract",
    "Endpoint": "_provider.contract",
    "HelperKind": "_provider.contract",
    "NoCredentials": "_cluster.credentials",
    "NotReadable": "_provider.contract",
    "Object": "_api.kinds",
    "Observation": "_provider.contract",
    "ObservedPhase": "_provider.contract",
    "Operator": "_provider.upstream_kind",
    "Pods": "_provider.upstream_pods",
    "PodDefaults": "_provider.contract",
    "Propagation": "_provider.contract",
    "Provider": "_provider.contract",
    "ReadyReason": "_provider.contract",
    "Rendered": "_provider.contract",
    "Replicas": "_provider.contract",
    "Schema": "_provider.upstream_kind",
    "SelectionRule": "_provider.contract",
    "Settings": "_provider.embedding",
    "UnsupportedSchema": "_provider.upstream_kind",
    "UpstreamKind": "_provider.upstream_kind",
    "connect": "_provider.embedding",
    "from_flags": "_provider.as_started",
    "manifest": "_provider.installation",
    "run": "_provider.run",
    "serve": "_provider.embedding",
}
"""The private module of each name."""

_MOVED: Final = {
    "LAST_WORDS": "pod",
    "ComponentScaling": "spec",
    "Derived": "engine",
    "Fields": "crd",
    "GpuSpec": "spec",
    "ModelDeploymentSpec": "spec",
    "Parallel": "engine",
    "UpstreamCondition": "status",
    "aggregated_resources": "pod",
    "argv": "engine",
    "by_fields": "crd",
    "container_resources": "pod",
    "contradictions": "engine",
    "count": "status",
    "declared": "crd",
    "duration": "flags",
    "flag": "flags",
    "literal": "engine",
    "mapping": "status",
    "parallel": "engine",
    "refused_fields": "spec",
    "secret_env_from": "pod",
    "supports": "spec:incompatibilities",
    "text": "status",
    "upstream_conditions": "status",
}
"""Names of 0.2 that moved: the public module of each, and the name there if it is another one. They go with 0.4."""


def __getattr__(name: str) -> Any:
    """Import a public name, or read the version. Raises AttributeError for any other name."""
    if name == "__version__":
        from importlib.metadata import version

        return version("kubefoundry-sdk")
    if name in _MOVED:
        return _moved(name)
    if name not in _SOURCES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_SOURCES[name]}"), name)
    globals()[name] = value
    return value


def _moved(name: str) -> Any:
    """Return a name of an earlier version, with a warning at the place that uses it."""
    import warnings
    from importlib import import_module

    module, _, new = _MOVED[name].partition(":")
    place, new = f"{__name__}.{module}", new or name
    # two functions are between the warning and the place: this one and `__getattr__`
    warnings.warn(
        f"{__name__}.{name} is deprecated: import {new} from {place}", DeprecationWarning, stacklevel=3
    )
    return getattr(import_module(place), new)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
