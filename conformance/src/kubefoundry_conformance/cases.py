"""Cases that the author of a subject writes: statuses of the upstream object, and the expected observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kubefoundry_sdk._api import foreign_yaml, validation
from kubefoundry_sdk._provider.contract import ObservedPhase, ReadyReason


class Unusable(Exception):
    """Raised for input of the command line that cannot be used; the message has one line."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Expected(_Strict):
    """Expected observation of a status. Fields other than phase and reason are compared only if they are set."""

    phase: ObservedPhase
    reason: ReadyReason
    ready: int | None = None
    message: str = ""
    """Part of the message."""
    update_failed: bool = False


class Case(_Strict):
    """A status that the upstream writes, and its expected observation. `status` is None before the first write."""

    name: str
    status: dict[str, Any] | None = None
    spec: str | None = None
    """Name of an entry of `specs`; the first entry if None."""
    replicas: int | None = None
    """Replaces `scaling.replicas` of the spec."""
    generation: int = 1
    """`metadata.generation` of the upstream object."""
    object: dict[str, Any] = Field(default_factory=dict)
    """Fields that the API server or a controller adds to the rendered object."""
    expect: Expected


class Cases(_Strict):
    """A file of cases."""

    specs: dict[str, dict[str, Any]] = Field(min_length=1)
    """Specs that the provider supports, by name, the simplest first."""
    statuses: list[Case] = Field(default_factory=list)
    states: list[str] = Field(default_factory=list)
    """Paths of enumerated words (`status.state`, `status.conditions.0.status`).

    Any word that the provider does not know must yield `Unknown`.
    """
    meaningless: dict[str, str] = Field(default_factory=dict)
    """Fields of the spec that are neither honoured nor refused, and why (`engine.trustRemoteCode`)."""
    unexercised: dict[str, str] = Field(default_factory=dict)
    """Permissions of the manifest that no check exercises (`get secrets`), and their purpose."""
    needed: list[str] = Field(default_factory=list)
    """Fields of the upstream CRD that the provider requires although a minimal spec does not set them."""

    def spec_of(self, case: Case) -> dict[str, Any]:
        """Return the spec of a case, with its replicas."""
        spec = self.specs[case.spec] if case.spec else next(iter(self.specs.values()))
        if case.replicas is None:
            return spec
        return {**spec, "scaling": {**(spec.get("scaling") or {}), "replicas": case.replicas}}


def read(file: Path) -> Cases:
    """Read and validate a file of cases.

    Raises:
        Unusable: The file cannot be read or is invalid. The message names the first problem.
    """
    document = document_of(file)
    try:
        cases = Cases.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        at = ".".join(str(part) for part in first["loc"]) or "the file"
        raise Unusable(f"{file}: {at}: {first['msg']}") from error
    for name, spec in cases.specs.items():
        if problems := validation.validate(spec):
            raise Unusable(f"{file}: specs.{name}: {problems[0].path} {problems[0].message}")
    for case in cases.statuses:
        if case.spec is not None and case.spec not in cases.specs:
            raise Unusable(f"{file}: statuses: {case.name}: no spec is called {case.spec}")
    return cases


def merged(value: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value with the change applied. Maps are merged, other values are replaced."""
    return {
        **value,
        **{
            key: merged(value.get(key) or {}, part) if isinstance(part, Mapping) else part
            for key, part in change.items()
        },
    }


def document_of(file: Path) -> Any:
    """Read the single YAML document of a file.

    Raises:
        Unusable: The file cannot be read or is not YAML.
    """
    return _read(file, foreign_yaml.document)


def documents_of(file: Path) -> list[dict[str, Any]]:
    """Read the YAML documents of a file that are maps.

    Raises:
        Unusable: The file cannot be read or is not YAML.
    """
    return [document for document in _read(file, foreign_yaml.documents) if isinstance(document, dict)]


def _read(file: Path, read: Callable[[str], Any]) -> Any:
    try:
        return read(file.read_text(encoding="utf-8"))
    except foreign_yaml.Unreadable as error:
        raise Unusable(f"cannot read {file}: it {error}") from error
    except (OSError, UnicodeError) as error:
        raise Unusable(f"cannot read {file}: {' '.join(str(error).split())}") from error


def crd_in(file: Path, name: str) -> Any:
    """Return the CustomResourceDefinition of that name from a file.

    Raises:
        Unusable: The file cannot be read or has no such CRD.
    """
    for document in documents_of(file):
        if (document.get("metadata") or {}).get("name") == name:
            return document
    raise Unusable(
        f"{file} holds no CustomResourceDefinition {name}: give the one that the provider writes to"
    )
