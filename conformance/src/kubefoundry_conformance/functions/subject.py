"""A provider's functions under test, and what their checks build with."""

from __future__ import annotations

import copy
import importlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final, get_args

from kubefoundry_conformance.cases import Cases, Unusable
from kubefoundry_conformance.check import Broken, Finding, Skipped
from kubefoundry_sdk.api import validation
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.modeldeployment import Engine, ServingMode
from kubefoundry_sdk.api.names import PROVIDER_PACKAGES
from kubefoundry_sdk.provider.contract import Deployment, Observation, Provider, Rendered
from kubefoundry_sdk.provider.reconcile import compatibility
from kubefoundry_sdk.provider.upstream_kind import Schema, UnsupportedSchema
from kubefoundry_sdk.provider.write import manifest
from kubefoundry_sdk.testing.generated import deployment as typed

Spec = dict[str, Any]
EXAMPLES: Final = 150
"""Generated values for each check that generates some."""

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
    """How another process finds the provider: before this one has loaded it, which may change any of that."""

    where: str
    path: tuple[str, ...]
    environment: dict[str, str]
    folder: Path

    @classmethod
    def here(cls, where: str) -> Start:
        # Python passes over what is not a string; where it looks for '', is here
        path = tuple(entry or str(Path.cwd()) for entry in sys.path if isinstance(entry, str))
        return cls(where, path, dict(os.environ), Path.cwd())


@dataclass(frozen=True)
class Functions:
    """crd: the upstream CRD (JSON), None for a kind of Kubernetes. examples: see EXAMPLES. start: None where no other
    process can find the provider."""

    provider: Provider
    crd: Object | None
    cases: Cases
    examples: int = EXAMPLES
    start: Start | None = None

    @cached_property
    def schema(self) -> Schema:
        """What `probe` makes of the CRD. Raises Unusable where that is no schema: nothing can be checked then."""
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
        return probed

    def installed(self) -> Object:
        """A copy of the CRD. Raises Skipped for a kind of Kubernetes, which has none."""
        if self.crd is None:
            raise Skipped(f"{self.provider.upstream.kind} is part of Kubernetes: there is no CRD to probe")
        return copy.deepcopy(self.crd)

    def structure(self, crd: Object | None = None) -> dict[str, Any]:
        """The `openAPIV3Schema` of the version that is written. Raises Skipped where there is none."""
        version = self.schema.api_version.rpartition("/")[2]
        for candidate in (crd or self.installed())["spec"]["versions"]:
            if candidate["name"] == version:
                found: dict[str, Any] = candidate["schema"]["openAPIV3Schema"]
                return found
        raise Skipped(f"the CRD has no version {version}")

    def bases(self) -> Iterator[Spec]:
        """Specs that are taken: those of the cases, and the smallest of every engine and mode."""
        can = self.provider.capabilities
        smallest = [
            {**MINIMAL[mode], "engine": {"type": engine}}
            for mode in can.serving_modes
            for engine in can.engines
        ]
        for spec in (*self.cases.specs.values(), *smallest):
            if not validation.validate(spec) and self.takes(deployment(spec)):
                yield spec

    def first(self) -> Spec:
        """The first of the cases' specs. Raises Skipped where it is refused."""
        spec = next(iter(self.cases.specs.values()))
        if refused := self.problems(deployment(spec)):
            raise Skipped(f"the first spec of the cases is refused: {refused[0]}")
        return spec

    def problems(self, asked: Deployment) -> tuple[str, ...]:
        """All that stands against a spec. Raises Broken."""
        try:
            return compatibility.check(self.provider, asked, self.schema).problems
        except (Exception, SystemExit) as error:
            raise Broken("SUP-2", _raised("supports", error, asked)) from error

    def takes(self, asked: Deployment) -> bool:
        return not self.problems(asked)

    def render(self, asked: Deployment, schema: Schema | None = None) -> Rendered:
        """Raises Broken."""
        try:
            return self.provider.render(asked, schema or self.schema)
        except (Exception, SystemExit) as error:
            raise Broken("REN-1", _raised("render", error, asked)) from error

    def observe(self, asked: Deployment, live: Object) -> Observation:
        """Raises Broken."""
        try:
            return self.provider.observe(asked, live)
        except (Exception, SystemExit) as error:
            seen = f"observe raises {error!r} on status {live.get('status')!r}"
            raise Broken(
                "OBS-2", Finding(seen, "an Observation, reason Unknown where nothing is known")
            ) from error

    def live(self, asked: Deployment, status: Any, generation: int = 1, **further: Any) -> Object:
        """The upstream object of a deployment, as it lies in the API server with that status."""
        obj = manifest.dress(self.render(asked).main, asked, self.provider.name)
        meta = obj["metadata"]
        meta |= {"uid": f"{asked.uid}-up", "generation": generation, "resourceVersion": "7"}
        meta["creationTimestamp"] = "2026-11-22T00:00:00Z"
        if status is not None:
            obj["status"] = copy.deepcopy(status)
        made: Object = _over(obj, further)
        return made


def deployment(spec: Spec, name: str = "m", **more: Any) -> Deployment:
    """What a provider gets for a spec, with the defaults that the API server would have added."""
    return typed(validation.default(copy.deepcopy(spec)), name, **more)


def loaded(where: str) -> Provider:
    """The provider that MODULE:FUNCTION returns, or that an installed package announces. Raises Unusable."""
    try:
        if ":" in where:
            module, _, function = where.partition(":")
            made = getattr(importlib.import_module(module), function)
        else:
            made = _announced(where).load()
        provider = made() if callable(made) else made
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
    return _of_the_api(provider)


def _announced(name: str) -> EntryPoint:
    """Raises Unusable."""
    known = {entry.name: entry for entry in entry_points(group=PROVIDER_PACKAGES)}
    if name not in known:
        raise Unusable(
            f"no provider at {name}: no installed package has an entry point {name} in the group {PROVIDER_PACKAGES} "
            f"(there is {', '.join(sorted(known)) or 'none'}): install the package again, or name a MODULE:FUNCTION"
        )
    return known[name]


def _of_the_api(provider: Provider) -> Provider:
    """Raises Unusable where it is capable of what no ModelDeployment can ask for."""
    able = provider.capabilities
    for field, named, known in (
        ("engines", able.engines, get_args(Engine)),
        ("serving_modes", able.serving_modes, get_args(ServingMode)),
    ):
        if strange := [one for one in named if one not in known]:
            raise Unusable(
                f"capabilities.{field} of provider {provider.name} names {', '.join(strange)}, which no "
                f"ModelDeployment can ask for: name some of {', '.join(known)}"
            )
    return provider


def _over(base: Any, further: Any) -> Any:
    if isinstance(base, dict) and isinstance(further, dict):
        return {**base, **{key: _over(base.get(key), value) for key, value in further.items()}}
    return further


def _raised(function: str, error: BaseException, asked: Deployment) -> Finding:
    spec = asked.spec.model_dump(by_alias=True, exclude_defaults=True)
    return Finding(f"{function} raises {error!r} on spec {spec}", "no exception, whatever a valid spec holds")
