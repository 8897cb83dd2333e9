"""Find fields that a ModelDeployment does not have: typing errors, which the API server would drop or refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from kubefoundry_cli.output import clean
from kubefoundry_sdk._api.structure import Schema
from kubefoundry_sdk._api.validation import schema

DEEPEST: Final = 64
"""Maximum number of levels to search. A spec with deeper nesting is refused for its depth (contract §2)."""

ROOT: Final = ("apiVersion", "kind", "metadata", "spec", "status")


def unknown_fields(obj: Mapping[str, Any]) -> Iterator[str]:
    """Yield each field that the CRD's schema lacks: `spec.engine.contexLength; did you mean contextLength?`.

    Free-form maps and wrongly typed values are skipped.
    """
    for key in obj:
        if key not in ROOT:
            yield described([str(key)], ROOT)
    yield from _below(obj.get("spec"), schema(), ["spec"])


def described(path: Sequence[str], fields: Sequence[str]) -> str:
    """Return the path, and the field of `fields` that is most likely meant."""
    near = get_close_matches(path[-1], fields, 1)
    return clean(".".join(path)) + (f"; did you mean {near[0]}?" if near else "")


def _below(value: Any, place: Schema, path: list[str]) -> Iterator[str]:
    if len(path) > DEEPEST:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _below(item, place.get("items", {}), [*path[:-1], f"{path[-1]}[{index}]"])
    if not isinstance(value, dict):
        return
    fields, others = place.get("properties", {}), place.get("additionalProperties")
    is_free = place.get("x-kubernetes-preserve-unknown-fields") or not fields
    for key, child in value.items():
        if key in fields:
            yield from _below(child, fields[key], [*path, key])
        elif others:
            yield from _below(child, others, [*path, str(key)])
        elif not is_free:
            yield described([*path, str(key)], list(fields))
