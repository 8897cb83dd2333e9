"""`spec.provider.overrides` checked against the provider's typed form (contract §2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError


def wrong_types(form: type[BaseModel], given: Mapping[str, Any]) -> list[str]:
    """Problems that make `ProviderCompatible` False: `overrides.frontend.replicas: Input should be …`."""
    try:
        form.model_validate(given)
    except ValidationError as error:
        return [
            f"overrides.{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_url=False)
            if problem["type"] != "extra_forbidden"
        ]
    return []


def unknown_keys(form: type[BaseModel], given: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Dotted paths, at any depth, that the form does not know: most likely typos."""
    known = {name: field for key, field in form.model_fields.items() for name in (field.alias or key,)}
    unknown = []
    for key, value in given.items():
        if key not in known:
            unknown.append(f"{prefix}{key}")
            continue
        inner = _model(known[key].annotation)
        if inner and isinstance(value, Mapping):
            unknown.extend(unknown_keys(inner, value, f"{prefix}{key}."))
    return unknown


def known_keys(form: type[BaseModel], prefix: str = "") -> list[str]:
    """Dotted paths that the form knows, for the message."""
    keys = []
    for name, field in form.model_fields.items():
        inner = _model(field.annotation)
        path = f"{prefix}{field.alias or name}"
        keys.extend(known_keys(inner, f"{path}.") if inner else [path])
    return keys


def _model(annotation: Any) -> type[BaseModel] | None:
    """The model in an annotation such as `Frontend` or `Frontend | None`."""
    for candidate in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None
