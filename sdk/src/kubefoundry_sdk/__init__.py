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

    from kubefoundry_sdk._api.kinds import Object as Object
    from kubefoundry_sdk._cluster.client import Client as Client
    from kubefoundry_sdk._cluster.credentials import NoCredentials as NoCredentials
    from kubefoundry_sdk._provider.as_started import from_flags as from_flags
    from kubefoundry_sdk._provider.contract import Capabilities as Capabilities
    from kubefoundry_sdk._provider.contract import Deployment as Deployment
    from kubefoundry_sdk._provider.contract import Document as Document
    from kubefoundry_sdk._provider.contract import Endpoint as Endpoint
    from kubefoundry_sdk._provider.contract import HelperKind as HelperKind
    from kubefoundry_sdk._provider.contract import NotReadable as NotReadable
    from kubefoundry_sdk._provider.contract import Observation as Observation
    from kubefoundry_sdk._provider.contract import ObservedPhase as ObservedPhase
    from kubefoundry_sdk._provider.contract import PodDefaults as PodDefaults
    from kubefoundry_sdk._provider.contract import Propagation as Propagation
    from kubefoundry_sdk._provider.contract import Provider as Provider
    from kubefoundry_sdk._provider.contract import ReadyReason as ReadyReason
    from kubefoundry_sdk._provider.contract import Rendered as Rendered
    from kubefoundry_sdk._provider.contract import Replicas as Replicas
    from kubefoundry_sdk._provider.contract import SelectionRule as SelectionRule
    from kubefoundry_sdk._provider.embedding import Settings as Settings
    from kubefoundry_sdk._provider.embedding import connect as connect
    from kubefoundry_sdk._provider.embedding import serve as serve
    from kubefoundry_sdk._provider.installation import manifest as manifest
    from kubefoundry_sdk._provider.run import run as run
    from kubefoundry_sdk._provider.upstream_kind import Operator as Operator
    from kubefoundry_sdk._provider.upstream_kind import Schema as Schema
    from kubefoundry_sdk._provider.upstream_kind import UnsupportedSchema as UnsupportedSchema
    from kubefoundry_sdk._provider.upstream_kind import UpstreamKind as UpstreamKind
    from kubefoundry_sdk._provider.upstream_pods import Pods as Pods
    from kubefoundry_sdk._runtime.start import CannotStart as CannotStart

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

_SOURCES: Final = {
    name: module
    for module, names in {
        "_api.kinds": "Object",
        "_cluster.client": "Client",
        "_cluster.credentials": "NoCredentials",
        "_provider.as_started": "from_flags",
        "_provider.contract": "Capabilities Deployment Document Endpoint HelperKind NotReadable Observation "
        "ObservedPhase PodDefaults Propagation Provider ReadyReason Rendered Replicas SelectionRule",
        "_provider.embedding": "Settings connect serve",
        "_provider.installation": "manifest",
        "_provider.run": "run",
        "_provider.upstream_kind": "Operator Schema UnsupportedSchema UpstreamKind",
        "_provider.upstream_pods": "Pods",
        "_runtime.start": "CannotStart",
    }.items()
    for name in names.split()
}
"""The private module of each public name."""

__all__ = sorted(_SOURCES)

_MOVED: Final = {
    name: module
    for module, names in {
        "crd": "Fields by_fields declared",
        "engine": "Derived Parallel argv contradictions literal parallel",
        "flags": "duration flag",
        "pod": "LAST_WORDS aggregated_resources container_resources secret_env_from",
        "spec": "ComponentScaling GpuSpec ModelDeploymentSpec refused_fields",
        "spec:incompatibilities": "supports",
        "status": "UpstreamCondition count mapping text upstream_conditions",
    }.items()
    for name in names.split()
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
