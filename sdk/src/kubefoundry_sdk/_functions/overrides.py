"""The form of `spec.provider.overrides` from a description: a few keywords of JSON Schema."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

LEVELS: Final = 8
"""Levels of objects and lists below the overrides."""

_PLAIN: Final[dict[str, Any]] = {"string": str, "integer": int, "number": float, "boolean": bool}
_KEYWORDS: Final[dict[str, frozenset[str]]] = {
    "string": frozenset({"enum"}),
    "integer": frozenset({"minimum", "maximum"}),
    "number": frozenset({"minimum", "maximum"}),
    "boolean": frozenset(),
    "array": frozenset({"items"}),
    "object": frozenset({"properties"}),
}
"""The keywords of each type, next to `type` and `description`."""


def form(schema: Any) -> type[BaseModel]:
    """Return the typed form of overrides.

    Raise ValueError, with the path, for a keyword or type beyond the supported ones.
    """
    if not isinstance(schema, dict) or schema.get("type") != "object" or "properties" not in schema:
        raise ValueError("overrides: has to be of type object, with properties")
    model: type[BaseModel] = _type(schema, "overrides", LEVELS)
    return model


def _type(schema: Any, path: str, levels: int) -> Any:
    # A list of types is valid JSON Schema, and has no hash.
    if not isinstance(schema, dict) or schema.get("type") not in tuple(_KEYWORDS):
        raise ValueError(f"{path}.type: should be one of {', '.join(_KEYWORDS)}")
    kind = schema["type"]
    if unknown := sorted(schema.keys() - _KEYWORDS[kind] - {"type", "description"}):
        raise ValueError(f"{path}.{unknown[0]}: is an unknown key for type {kind}")
    if levels == 0:
        raise ValueError(f"{path}: is nested more than {LEVELS} levels deep")
    if kind == "array":
        return list[_type(schema.get("items"), f"{path}.items", levels - 1)]  # type: ignore[misc]
    if kind == "object":
        return _object(schema, path, levels)
    if "enum" in schema:
        return _choice(schema["enum"], path)
    return Annotated[
        _PLAIN[kind], Field(ge=_bound(schema, "minimum", path), le=_bound(schema, "maximum", path))
    ]


def _object(schema: dict[str, Any], path: str, levels: int) -> Any:
    if "properties" not in schema:
        return dict[str, Any]
    if not isinstance(schema["properties"], dict):
        raise ValueError(f"{path}.properties: should be an object")
    fields: dict[str, Any] = {
        f"field_{position}": (
            _type(value, f"{path}.properties.{name}", levels - 1) | None,
            Field(default=None, alias=name),
        )
        for position, (name, value) in enumerate(schema["properties"].items())
    }
    return create_model("Overrides", __config__=ConfigDict(extra="ignore"), **fields)


def _choice(values: Any, path: str) -> Any:
    if not (isinstance(values, list) and values and all(isinstance(value, str) for value in values)):
        raise ValueError(f"{path}.enum: should be a list of strings")
    return Literal[tuple(values)]


def _bound(schema: dict[str, Any], keyword: str, path: str) -> float | None:
    value = schema.get(keyword)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ValueError(f"{path}.{keyword}: should be a number")
    if schema["type"] == "integer" and isinstance(value, float):
        raise ValueError(f"{path}.{keyword}: should be an integer")
    return value
