"""A ModelDeployment that a command is given: by file, by name in the cluster, with edits of single fields."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.validation import default, schema, validate

NO_UID: Final = "00000000-0000-0000-0000-000000000000"
"""The uid of an object that no cluster has."""


def from_file(name: str, namespace: str = "default") -> Object:
    """The only ModelDeployment of a file of YAML documents; `-` reads standard input. Raises Failure."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        documents = [one for one in yaml.safe_load_all(text) if one]
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(
            f"cannot read {name}: {getattr(error, 'strerror', None) or error}", Exit.USAGE
        ) from error
    except (yaml.YAMLError, RecursionError) as error:
        told = " ".join(str(error).split()) or "it is nested too deeply"
        raise Failure(f"cannot read {name}: it is not YAML: {told}", Exit.USAGE) from error
    found = [one for one in documents if isinstance(one, dict) and one.get("kind") == names.MODEL_DEPLOYMENT]
    if len(found) != 1:
        raise Failure(f"{name} holds {len(found)} ModelDeployments; one is needed", Exit.USAGE)
    return completed(found[0], name, namespace)


def completed(obj: Object, where: str, namespace: str = "default") -> Object:
    """The object with what only a stored one has, so that it can be rendered. Raises Failure."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
        raise Failure(f"{where}: metadata.name is missing", Exit.USAGE)
    stored = {"namespace": namespace, "uid": NO_UID, "generation": 1}
    return {**obj, "metadata": {**stored, **meta}, "spec": obj.get("spec") or {}}


def edited(obj: Object, edits: Sequence[str]) -> Object:
    """A copy with `PATH=VALUE` of each edit set below its spec; an empty value removes the field. Raises Failure."""
    changed = copy.deepcopy(obj)
    for edit in edits:
        path, equals, text = edit.partition("=")
        steps = path.removeprefix("spec.").split(".")
        if not equals or not all(steps):
            raise Failure(
                f"--set {edit}: write PATH=VALUE, for example engine.contextLength=8192", Exit.USAGE
            )
        _set(changed["spec"], steps, _typed(steps, text, edit), edit)
    return changed


def valid(obj: Object) -> Object:
    """The object with defaults. Raises Failure that names all that is wrong with its spec."""
    problems = validate(obj["spec"])
    if problems:
        told = "; ".join(f"{problem.path}: {problem.message}" for problem in problems)
        raise Failure(f"ModelDeployment '{obj['metadata']['name']}' is not valid: {told}")
    return {**obj, "spec": default(obj["spec"])}


def _set(spec: dict[str, Any], steps: Sequence[str], value: Any, edit: str) -> None:
    place: Any = spec
    for step in steps[:-1]:
        place = place.setdefault(step, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict):
            raise Failure(f"--set {edit}: {step} is not an object", Exit.USAGE)
    if value is None:
        place.pop(steps[-1], None)
    else:
        place[steps[-1]] = value


def _typed(steps: Sequence[str], text: str, edit: str) -> Any:
    """The value in the type that the field has; None for an empty text."""
    if not text:
        return None
    types = _types(steps)
    if types is None:
        raise Failure(f"--set {edit}: a ModelDeployment has no field spec.{'.'.join(steps)}", Exit.USAGE)
    if types == {"string"}:
        return text
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Failure(f"--set {edit}: the value is not YAML", Exit.USAGE) from error


def _types(steps: Sequence[str]) -> set[str] | None:
    """Types of the field, empty where anything goes; None for a field that does not exist."""
    place: Mapping[str, Any] = schema()
    for step in steps:
        further = place.get("properties", {}).get(step) or place.get("additionalProperties")
        if not isinstance(further, Mapping):
            return set() if place.get("x-kubernetes-preserve-unknown-fields") else None
        place = further
    return {place["type"]} if "type" in place and not place.get("x-kubernetes-int-or-string") else set()
