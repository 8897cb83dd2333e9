"""A provider under test: its functions, guarded against exceptions, and the input that the checks build."""

from __future__ import annotations

import atexit
import copy
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final, Literal, get_args

from kubefoundry_conformance.cases import Cases, Unusable
from kubefoundry_conformance.check import Broken, Finding, Skipped
from kubefoundry_sdk._api import validation
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.modeldeployment import Engine, ServingMode
from kubefoundry_sdk._api.names import PROVIDER_PACKAGES
from kubefoundry_sdk._functions.client import Client
from kubefoundry_sdk._functions.main import command, described, mapped
from kubefoundry_sdk._functions.messages import Settings
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import Deployment, Observation, Provider, Rendered
from kubefoundry_sdk._provider.reconcile import compatibility
from kubefoundry_sdk._provider.upstream_kind import Schema, UnsupportedSchema
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk.testing.generated import deployment as typed_deployment

Spec = dict[str, Any]
Way = Literal["functions", "functions_command", "mapping"]
"""The option that names the provider."""

_PROGRAMS: Final[list[Client]] = []
EXAMPLES: Final = 150
"""Default number of values that a check generates."""

MINIMAL: Final[dict[str, Spec]] = {
    "aggregated": {"model": {"id": "org/model"}, "resources": {"gpu": {"count": 1}}},
    "disaggregated": {
        "model": {"id": "org/model"},
        "serving": {"mode": "disaggregated"},
        "scaling": {
            "prefill": {"gpu": {"count": 1}, "memory": "16Gi"},
            "decode": {"gpu": {"count": 1}, "memory": "16Gi"},
        },
    },
}


@dataclass(frozen=True)
class Start:
    """Environment in which another process can load the provider.

    It is recorded before this process loads the provider, because loading may change `sys.path`, the environment and
    the working directory.
    """

    where: str
    path: tuple[str, ...]
    environment: dict[str, str]
    folder: Path
    way: Way = "functions"

    @classmethod
    def here(cls, where: str, way: Way = "functions") -> Start:
        """Record the environment of this process.

        `where` is MODULE:FUNCTION, the name of a package, the command of a program with the functions, or a file.
        """
        # Python skips entries that are not strings, and reads '' as the working directory.
        path = tuple(entry or str(Path.cwd()) for entry in sys.path if isinstance(entry, str))
        return cls(where, path, dict(os.environ), Path.cwd(), way)


@dataclass(frozen=True)
class Functions:
    """A provider under test.

    Attributes:
        provider: The provider.
        crd: The upstream CRD, None for a kind of Kubernetes.
        cases: The author's cases.
        examples: The number of values that each check generates.
        start: The environment for other processes, None if they cannot load the provider.
    """

    provider: Provider
    crd: Object | None
    cases: Cases
    examples: int = EXAMPLES
    start: Start | None = None

    @cached_property
    def schema(self) -> Schema:
        """Return the result of `probe`.

        Raises:
            Unusable: `probe` does not support the CRD, or returns no schema, so no check can run.
        """
        if self.provider.upstream.schema is not None:
            return self.provider.upstream.schema
        try:
            probed = self.provider.probe(copy.deepcopy(self.crd or {}))
        except (Exception, SystemExit) as error:
            raise Unusable(f"probe raises {error!r} on the CRD that was given") from error
        if isinstance(probed, UnsupportedSchema):
            raise Unusable(
                f"probe does not support the CRD that was given, because it lacks {', '.join(probed.missing)}: "
                "give the CRD that the provider is for, or ask for less in probe"
            )
        if not isinstance(probed, Schema):
            raise Unusable(f"probe returns {probed!r} on the CRD that was given, and not a Schema")
        return probed

    def installed(self) -> Object:
        """Return a copy of the CRD.

        Raises:
            Skipped: The kind is part of Kubernetes, and has no CRD.
        """
        if self.crd is None:
            raise Skipped(f"{self.provider.upstream.kind} is part of Kubernetes: there is no CRD to probe")
        return copy.deepcopy(self.crd)

    def structure(self, crd: Object | None = None) -> dict[str, Any]:
        """Return the `openAPIV3Schema` of the version that the provider writes.

        Args:
            crd: The CRD, by default the subject's.

        Raises:
            Skipped: The CRD lacks that version.
        """
        version = self.schema.api_version.rpartition("/")[2]
        for candidate in (crd or self.installed())["spec"]["versions"]:
            if candidate["name"] == version:
                schema: dict[str, Any] = candidate["schema"]["openAPIV3Schema"]
                return schema
        raise Skipped(f"the CRD has no version {version}")

    def bases(self) -> Iterator[Spec]:
        """Yield supported specs: those of the cases, and a minimal one for each engine and mode."""
        can = self.provider.capabilities
        smallest = [
            {**MINIMAL[mode], "engine": {"type": engine}}
            for mode in can.serving_modes
            for engine in can.engines
        ]
        for spec in (*self.cases.specs.values(), *smallest):
            if not validation.validate(spec) and self.takes(build_deployment(spec)):
                yield spec

    def first(self) -> Spec:
        """Return the first spec of the cases.

        Raises:
            Skipped: The provider refuses it.
        """
        spec = next(iter(self.cases.specs.values()))
        if refused := self.problems(build_deployment(spec)):
            raise Skipped(f"the first spec of the cases is refused: {refused[0]}")
        return spec

    def problems(self, deployment: Deployment) -> tuple[str, ...]:
        """Return the reasons why the provider refuses a spec.

        Raises:
            Broken: `supports` raises, or returns something that is not a list of sentences.
        """
        try:
            return compatibility.check(self.provider, deployment, self.schema).problems
        except results.Fault as fault:
            raise Broken("SUP-2", wrong_problems(fault)) from fault
        except (Exception, SystemExit) as error:
            raise Broken("SUP-2", _raised("supports", error, deployment)) from error

    def takes(self, deployment: Deployment) -> bool:
        """Check whether the provider supports a spec.

        Raises:
            Broken: `supports` raises.
        """
        return not self.problems(deployment)

    def render(self, deployment: Deployment, schema: Schema | None = None) -> Rendered:
        """Call `render`.

        Args:
            deployment: The deployment to render.
            schema: The result of `probe`, by default of the subject's CRD.

        Raises:
            Broken: `render` raises, or returns something that is not a Rendered.
        """
        try:
            rendered = self.provider.render(deployment, schema or self.schema)
        except (Exception, SystemExit) as error:
            raise Broken("REN-1", _raised("render", error, deployment)) from error
        for problem in results.wrong_types_of_render(rendered, deployment):
            raise Broken(
                "REN-1", Finding(f"render returns {problem}", "a Rendered with objects as JSON has them")
            )
        return rendered

    def observe(self, deployment: Deployment, live: Object) -> Observation:
        """Call `observe`.

        Raises:
            Broken: `observe` raises, or returns something that is not an Observation.
        """
        expected = "an Observation, reason Unknown where nothing is known"
        try:
            observation = self.provider.observe(deployment, live)
        except (Exception, SystemExit) as error:
            seen = f"observe raises {error!r} on status {live.get('status')!r}"
            raise Broken("OBS-2", Finding(seen, expected)) from error
        for problem in results.wrong_types_of_observation(observation):
            raise Broken("OBS-2", Finding(f"observe returns {problem}", expected))
        return observation

    def live(self, deployment: Deployment, status: Any, generation: int = 1, **further: Any) -> Object:
        """Return the upstream object of a deployment as the API server stores it, with that status."""
        obj = manifest.with_ownership(self.render(deployment).main, deployment, self.provider.name)
        meta = obj["metadata"]
        meta |= {"uid": f"{deployment.uid}-up", "generation": generation, "resourceVersion": "7"}
        meta["creationTimestamp"] = "2026-11-22T00:00:00Z"
        if status is not None:
            obj["status"] = copy.deepcopy(status)
        live: Object = _overlaid(obj, further)
        return live


def build_deployment(spec: Spec, name: str = "m", **more: Any) -> Deployment:
    """Build the deployment that a provider gets for a spec, with the API server's defaults."""
    return typed_deployment(validation.default(copy.deepcopy(spec)), name, **more)


def start_provider(command_text: str) -> Provider:
    """Start a program with a provider's functions (docs/functions.md), and return the provider.

    The program ends with this process, or with `end_programs`.

    Raises:
        Unusable: The program does not start or describes no provider, or its capabilities are unknown to the API.
    """
    try:
        client = Client(command(command_text), Settings())
        _PROGRAMS.append(client)
        return _check_capabilities(described(client, None))
    except ValueError as error:
        raise Unusable(f"{error}; try the program with docs/functions.md") from error


def load_mapping(file: str) -> Provider:
    """Return the provider of a mapping's file (docs/mapping.md).

    Raises:
        Unusable: The file is invalid, or its capabilities are unknown to the API.
    """
    try:
        return _check_capabilities(mapped(Path(file), {}))
    except ValueError as error:
        raise Unusable(str(error)) from error


@atexit.register
def end_programs() -> None:
    """End the programs that were started, also those that no longer read their stdin."""
    while _PROGRAMS:
        _PROGRAMS.pop().close()


def load_provider(where: str) -> Provider:
    """Load the provider that MODULE:FUNCTION returns, or that an installed package announces.

    Raises:
        Unusable: There is no provider at that place, or its capabilities are unknown to the API.
    """
    try:
        if ":" in where:
            module, _, function = where.partition(":")
            factory = getattr(importlib.import_module(module), function)
        else:
            factory = _announced(where).load()
        provider = factory() if callable(factory) else factory
    except (ImportError, AttributeError) as error:
        raise Unusable(
            f"no provider at {where}: {error!r}; name a MODULE:FUNCTION that this Python can import"
        ) from error
    except Unusable:
        raise
    except (Exception, SystemExit) as error:
        raise Unusable(
            f"no provider at {where}: it raises {error!r}, and has to return a Provider without arguments"
        ) from error
    if not isinstance(provider, Provider):
        raise Unusable(f"{where} gives a {type(provider).__name__}, not a kubefoundry_sdk.Provider")
    return _check_capabilities(provider)


LOADERS: Final[dict[Way, Callable[[str], Provider]]] = {
    "functions": load_provider,
    "functions_command": start_provider,
    "mapping": load_mapping,
}


def _announced(name: str) -> EntryPoint:
    """Return the entry point of an installed provider package.

    Raises:
        Unusable: No installed package announces the provider.
    """
    announced = {entry.name: entry for entry in entry_points(group=PROVIDER_PACKAGES)}
    if name not in announced:
        raise Unusable(
            f"no provider at {name}: no installed package has an entry point {name} in the group {PROVIDER_PACKAGES} "
            f"(there is {', '.join(sorted(announced)) or 'none'}): install the package again, or name a "
            "MODULE:FUNCTION"
        )
    return announced[name]


def _check_capabilities(provider: Provider) -> Provider:
    """Return the provider.

    Raises:
        Unusable: No ModelDeployment can ask for one of its capabilities.
    """
    able = provider.capabilities
    for field, values, allowed in (
        ("engines", able.engines, get_args(Engine)),
        ("serving_modes", able.serving_modes, get_args(ServingMode)),
    ):
        if unknown := [value for value in values if value not in allowed]:
            raise Unusable(
                f"capabilities.{field} of provider {provider.name} names {', '.join(unknown)}, which no "
                f"ModelDeployment can ask for: name some of {', '.join(allowed)}"
            )
    return provider


def _overlaid(base: Any, further: Any) -> Any:
    if isinstance(base, dict) and isinstance(further, dict):
        return {**base, **{key: _overlaid(base.get(key), value) for key, value in further.items()}}
    return further


def wrong_problems(fault: results.Fault) -> Finding:
    """Return the violation of a `supports` whose result has a wrong type."""
    return Finding(str(fault), "a list of sentences, empty if everything is supported")


def _raised(function: str, error: BaseException, deployment: Deployment) -> Finding:
    spec = deployment.spec.model_dump(by_alias=True, exclude_defaults=True)
    return Finding(f"{function} raises {error!r} on spec {spec}", "no exception, whatever a valid spec holds")
