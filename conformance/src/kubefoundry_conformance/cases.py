"""The table of cases that a subject's author writes: what the upstream says, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kubefoundry_sdk.api import validation
from kubefoundry_sdk.api.foreign_yaml import CONVERSIONS
from kubefoundry_sdk.provider.contract import ObservedPhase, ReadyReason


class Unusable(Exception):
    """What the command line was given cannot be used: one line."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Expected(_Strict):
    """What a status means: phase and reason of `Ready`; the others are compared where they are stated."""

    phase: ObservedPhase
    reason: ReadyReason
    ready: int | None = None
    message: str = ""
    """Part of the message."""
    update_failed: bool = False


class Case(_Strict):
    """A status that the upstream has been seen to write (None: it has written none)."""

    name: str
    status: dict[str, Any] | None = None
    spec: str | None = None
    """Name of one under `specs`; the first where none is given."""
    replicas: int | None = None
    """`scaling.replicas` in place of the spec's."""
    generation: int = 1
    """`metadata.generation` of the upstream object."""
    object: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the upstream object, put over what is rendered: what the API server or a controller adds."""
    expect: Expected


class Cases(_Strict):
    """A file of cases."""

    specs: dict[str, dict[str, Any]] = Field(min_length=1)
    """Specs of ModelDeployments that the provider takes, by name, the simplest first."""
    statuses: list[Case] = Field(default_factory=list)
    states: list[str] = Field(default_factory=list)
    """Paths (`status.state`) of words whose meaning the provider knows: any other word has to be `Unknown`."""
    meaningless: dict[str, str] = Field(default_factory=dict)
    """Fields of the spec that are neither honoured nor refused, and why (`engine.trustRemoteCode`)."""
    unexercised: dict[str, str] = Field(default_factory=dict)
    """Rights of the manifest that the checks cannot see in use (`get secrets`), and what they are for."""
    needed: list[str] = Field(default_factory=list)
    """Fields of the upstream CRD without which the provider cannot work, though a minimal spec does not set them."""

    def of(self, case: Case) -> dict[str, Any]:
        """The spec of a case."""
        spec = self.specs[case.spec] if case.spec else next(iter(self.specs.values()))
        if case.replicas is None:
            return spec
        return {**spec, "scaling": {**(spec.get("scaling") or {}), "replicas": case.replicas}}


def read(file: Path) -> Cases:
    """Raises Unusable, which names the first problem."""
    document = document_of(file)
    try:
        cases = Cases.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        at = ".".join(str(part) for part in first["loc"]) or "the file"
        raise Unusable(f"{file}: {at}: {first['msg']}") from error
    for name, spec in cases.specs.items():
        if found := validation.validate(spec):
            raise Unusable(f"{file}: specs.{name}: {found[0].path} {found[0].message}")
    for case in cases.statuses:
        if case.spec is not None and case.spec not in cases.specs:
            raise Unusable(f"{file}: statuses: {case.name}: no spec is called {case.spec}")
    return cases


def merged(value: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The value, with what the change says in its place; maps are merged."""
    return {
        **value,
        **{
            key: merged(value.get(key) or {}, part) if isinstance(part, Mapping) else part
            for key, part in change.items()
        },
    }


def document_of(file: Path) -> Any:
    """The one YAML document of a file. Raises Unusable."""
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, *CONVERSIONS) as error:
        raise Unusable(f"cannot read {file}: {' '.join(str(error).split())}") from error


def documents_of(file: Path) -> list[dict[str, Any]]:
    """The YAML documents of a file. Raises Unusable."""
    try:
        documents = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, *CONVERSIONS) as error:
        raise Unusable(f"cannot read {file}: {' '.join(str(error).split())}") from error
    return [document for document in documents if isinstance(document, dict)]


def crd_in(file: Path, name: str) -> Any:
    """The CustomResourceDefinition of that name among a file's documents. Raises Unusable."""
    for document in documents_of(file):
        if (document.get("metadata") or {}).get("name") == name:
            return document
    raise Unusable(
        f"{file} holds no CustomResourceDefinition {name}: give the one that the provider writes to"
    )
