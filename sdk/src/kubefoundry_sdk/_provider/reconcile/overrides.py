"""Checks `spec.provider.overrides` against the provider's typed form (contract §2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

_TYPES: Final[Mapping[str, str]] = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a map",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "mapping_type": "a map",
    "model_attributes_type": "a map",
    "model_type": "a map",
    "string_type": "text",
}
"""The YAML type in words for each pydantic error type. Pydantic's own messages name Python types."""

_BOUNDS: Final[Mapping[str, str]] = {
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be greater than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "literal_error": "must be {expected}",
    "missing": "is required",
    "string_pattern_mismatch": "must match {pattern}",
}

_LENGTHS: Final[Mapping[str, tuple[str, str]]] = {
    "string_too_long": ("at most", "character"),
    "string_too_short": ("at least", "character"),
    "too_long": ("at most", "item"),
    "too_short": ("at least", "item"),
}


def wrong_types(form: type[BaseModel], values: Mapping[str, Any]) -> list[str]:
    """Return the problems that make `ProviderCompatible` False.

    For example `overrides.frontend.replicas: must be a whole number, …`.
    """
    try:
        form.model_validate(values)
    except ValidationError as error:
        problems: dict[str, list[ErrorDetails]] = {}
        for problem in error.errors(include_url=False):
            if problem["type"] != "extra_forbidden":
                problems.setdefault(_path(problem["loc"], values), []).append(problem)
        return [f"{path}: {_words(details)}" for path, details in problems.items()]
    return []


def _path(location: Sequence[int | str], values: Any) -> str:
    """Return the path without the names of a union's types, which pydantic adds."""
    path, value = "overrides", values
    for index, part in enumerate(location):
        if isinstance(value, Mapping):
            # The last part may be missing.
            if part not in value and index + 1 < len(location):
                continue
            value = value.get(str(part))
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
        else:
            continue
        path += f".{part}"
    return path


def _words(problems: Sequence[ErrorDetails]) -> str:
    """Return all problems of one value. A union has a problem for each of its types."""
    types = list(dict.fromkeys(_TYPES[problem["type"]] for problem in problems if problem["type"] in _TYPES))
    others = [_bound(problem) for problem in problems if problem["type"] not in _TYPES]
    if others or not types:
        return "; ".join(dict.fromkeys(others))
    return f"must be {' or '.join(types)}, but {_is(problems[0]['input'])}"


def _bound(problem: ErrorDetails) -> str:
    context = problem.get("ctx") or {}
    if problem["type"] in _LENGTHS:
        direction, unit = _LENGTHS[problem["type"]]
        count = context["min_length" if direction == "at least" else "max_length"]
        return f"must have {direction} {count} {unit}{'' if count == 1 else 's'}"
    words = _BOUNDS.get(problem["type"])
    return words.format(**context) if words else problem["msg"].removeprefix("Value error, ")


def _is(value: Any) -> str:
    kinds = (
        (bool, "true or false"),
        (int, "a whole number"),
        (float, "a number"),
        (str, "text"),
        (Mapping, "a map"),
        (list, "a list"),
    )
    return next((f"is {words}" for kind, words in kinds if isinstance(value, kind)), "has no value")


def unknown_keys(form: type[BaseModel], values: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted paths, at any depth, that the form does not know: most likely typos."""
    fields = {name: field for key, field in form.model_fields.items() for name in (field.alias or key,)}
    unknown = []
    for key, value in values.items():
        if key not in fields:
            unknown.append(f"{prefix}{key}")
            continue
        inner = _model(fields[key].annotation)
        if inner and isinstance(value, Mapping):
            unknown.extend(unknown_keys(inner, value, f"{prefix}{key}."))
    return unknown


def known_keys(form: type[BaseModel], prefix: str = "") -> list[str]:
    """Return the dotted paths that the form knows, for the message."""
    keys = []
    for name, field in form.model_fields.items():
        inner = _model(field.annotation)
        path = f"{prefix}{field.alias or name}"
        keys.extend(known_keys(inner, f"{path}.") if inner else [path])
    return keys


def _model(annotation: Any) -> type[BaseModel] | None:
    """Return the model in an annotation such as `Frontend` or `Frontend | None`."""
    for candidate in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None
