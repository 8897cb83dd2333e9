"""Read the ModelDeployment of a command: from a file, with edits of single fields."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kubefoundry_cli.cluster import namespace_name
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.output import say
from kubefoundry_cli.spec_path import ABSENT, NotAnObject, with_value
from kubefoundry_cli.unknown_fields import described, unknown_fields
from kubefoundry_cli.yaml_file import documents_in
from kubefoundry_sdk._api import foreign_text, foreign_yaml, formats, names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.validation import Problem, default, name_problem, schema, validate

NO_UID: Final = "00000000-0000-0000-0000-000000000000"
"""The uid of a ModelDeployment that is not stored in a cluster."""


def from_file(name: str, namespace: str = "default") -> Object:
    """Return the only ModelDeployment of a file of YAML documents; `-` reads standard input. Raises Failure."""
    return from_text(_text_of(name), name, namespace)


def all_from_file(name: str, edits: Sequence[str], namespace: str = "default") -> list[Object]:
    """Return the ModelDeployments of a file, and name the skipped documents on standard error.

    Args:
        name: The file; `-` reads standard input.
        edits: Edits of the only model (`edited`).
        namespace: The namespace of an object without one.

    Raises:
        Failure: There is none, one is twice there, has an unknown field, or there are edits and several models.
    """
    deployments, others = _split(_text_of(name), name)
    if not deployments:
        raise _wrong_number(name, deployments, others)
    if edits and len(deployments) > 1:
        raise Failure(
            f"{name} has {len(deployments)} ModelDeployments, and --set edits one: give it in a file of its own",
            Exit.USAGE,
        )
    objects = [edited(_read(document, name, namespace), edits) for document in deployments]
    seen = set()
    for obj in objects:
        key = (obj["metadata"]["namespace"], obj["metadata"]["name"])
        if key in seen:
            raise Failure(f"{name} has ModelDeployment {'/'.join(key)} twice", Exit.USAGE)
        seen.add(key)
    if others:
        say(f"note: {name} also has {foreign_text.listed(others)}, which this command skips")
    return objects


def _text_of(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(
            f"cannot read {name}: {getattr(error, 'strerror', None) or error}", Exit.USAGE
        ) from error


def from_text(text: str, name: str, namespace: str = "default") -> Object:
    """Return the only ModelDeployment of some YAML documents.

    Args:
        text: The documents.
        name: The name of the documents in errors.
        namespace: The namespace of an object without one.

    Raises:
        Failure: There is not exactly one ModelDeployment, or it has an unknown field.
    """
    deployments, others = _split(text, name)
    if len(deployments) != 1:
        raise _wrong_number(name, deployments, others)
    return _read(deployments[0], name, namespace)


def _split(text: str, name: str) -> tuple[list[Object], list[str]]:
    """Return the ModelDeployments of some YAML documents, and the kinds of the others."""
    documents = [item for document in documents_in(text, name) for item in _items(document)]
    maps = [document for document in documents if isinstance(document, dict)]
    deployments = [document for document in maps if document.get("kind") == names.MODEL_DEPLOYMENT]
    return deployments, [str(document.get("kind")) for document in maps if document not in deployments]


def _wrong_number(name: str, deployments: Sequence[Object], others: Sequence[str]) -> Failure:
    instead = f" beside {foreign_text.listed(others)}" if others else ""
    needed = "exactly one" if deployments else "one"
    return Failure(f"{name} has {len(deployments)} ModelDeployments{instead}; {needed} is needed", Exit.USAGE)


def _read(document: Object, name: str, namespace: str) -> Object:
    """Return a ModelDeployment as it is stored. Raises Failure."""
    for field in unknown_fields(document):
        raise Failure(f"{name}: a ModelDeployment has no field {field}", Exit.USAGE)
    obj = completed(document, name, namespace)
    if (version := obj.get("apiVersion")) not in names.API_VERSIONS:
        version_text = f"apiVersion {foreign_text.shown(str(version))}" if version else "no apiVersion"
        raise Failure(
            f"{name} has {version_text}; a ModelDeployment has {names.NEWEST_API_VERSION}", Exit.USAGE
        )
    # The versions have the same fields; the API server converts in the same way.
    return {**obj, "apiVersion": names.API_VERSION}


def _items(document: Any) -> list[Any]:
    """Return the items of a List, which `kubectl get -o yaml` prints. Return any other document as the only item."""
    if isinstance(document, dict) and document.get("kind") in ("List", f"{names.MODEL_DEPLOYMENT}List"):
        items = document.get("items")
        if isinstance(items, list) and items:
            return items
    return [document]


def completed(obj: Object, where: str, namespace: str = "default") -> Object:
    """Add the metadata that a stored object has, so that a provider can render the object. Raises Failure."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
        missing = (
            "is missing" if not isinstance(meta, dict) or "name" not in meta else "is not text: quote it"
        )
        raise Failure(f"{where}: metadata.name {missing}", Exit.USAGE)
    if not isinstance(meta.get("namespace", namespace), str):
        raise Failure(f"{where}: metadata.namespace is not text: quote it", Exit.USAGE)
    namespace_name(meta.get("namespace", namespace), f"; it is metadata.namespace of {where}")
    stored = {"namespace": namespace, "uid": NO_UID, "generation": 1}
    return {**obj, "metadata": {**stored, **meta}, "spec": obj.get("spec") or {}}


def edited(obj: Object, edits: Sequence[str]) -> Object:
    """Return a copy of the object with each edit (`PATH=VALUE`) applied to its spec. Raises Failure.

    An empty value removes the field.
    """
    changed = dict(obj)
    for edit in edits:
        path, equals, text = edit.partition("=")
        steps = path.removeprefix("spec.").split(".")
        if not equals or not all(steps):
            raise Failure(
                f"--set {edit}: write PATH=VALUE, for example engine.contextLength=8192", Exit.USAGE
            )
        try:
            changed["spec"] = with_value(changed["spec"], steps, _typed(steps, text, edit))
        except NotAnObject as error:
            raise Failure(f"--set {edit}: {error} is not an object", Exit.USAGE) from error
    return changed


def valid(obj: Object) -> Object:
    """Return a ModelDeployment that the user gave, with defaults. Raises Failure with all problems of its spec."""
    if problems := validate(obj["spec"]):
        raise invalid(obj, problems, Exit.USAGE)
    return {**obj, "spec": default(obj["spec"])}


def valid_stored(obj: Object) -> Object:
    """Return a ModelDeployment of the cluster, with defaults. Raises Failure with all problems of its spec."""
    if problems := validate(obj["spec"]):
        raise invalid(obj, problems, Exit.NO)
    return {**obj, "spec": default(obj["spec"])}


def valid_new(obj: Object) -> Object:
    """Return the object with defaults. Raises Failure like `valid`, and for an invalid name of a new object."""
    name = obj["metadata"]["name"]
    problem = name_problem(name)
    if not formats.is_name(name):
        problem = Problem(
            "metadata.name", "must be lower-case letters, digits and inner dashes, at most 253 characters"
        )
    if problem:
        raise invalid(obj, [problem], Exit.USAGE)
    return valid(obj)


def invalid(obj: Object, problems: Iterable[Problem], code: Exit) -> Failure:
    """Return the failure for an invalid ModelDeployment.

    Args:
        obj: The ModelDeployment.
        problems: What is invalid.
        code: USAGE for what the user gave (a file, `--set`, an argument), NO for a stored object.
    """
    reason = "; ".join(f"{problem.path}: {problem.message}" for problem in problems)
    return Failure(
        f"ModelDeployment '{foreign_text.shown(obj['metadata']['name'])}' is not valid: {reason}", code
    )


def _typed(steps: Sequence[str], text: str, edit: str) -> Any:
    """Convert the text to the type of the field. Return ABSENT for an empty text."""
    if not text:
        return ABSENT
    types = _types(steps, edit)
    if types == {"string"}:
        return text
    try:
        return foreign_yaml.document(text)
    except foreign_yaml.Unreadable as error:
        raise Failure(f"--set {edit}: the value {error}", Exit.USAGE) from error


def _types(steps: Sequence[str], edit: str) -> set[str]:
    """Return the types of the field, empty if any type is valid. Raises Failure for a field that does not exist."""
    place: Mapping[str, Any] = schema()
    for number, step in enumerate(steps, 1):
        fields = place.get("properties", {})
        further = fields.get(step) or place.get("additionalProperties")
        if not isinstance(further, Mapping):
            if place.get("x-kubernetes-preserve-unknown-fields"):
                return set()
            field = described(["spec", *steps[:number]], list(fields))
            raise Failure(f"--set {edit}: a ModelDeployment has no field {field}", Exit.USAGE)
        place = further
    return {place["type"]} if "type" in place and not place.get("x-kubernetes-int-or-string") else set()
