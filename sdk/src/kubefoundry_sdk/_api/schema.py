"""From typed models to the structural schema of a CustomResourceDefinition.

`structural` translates pydantic's schema of a model into the subset of JSON schema that Kubernetes 1.26 accepts in a
CRD. A model that the subset cannot express is refused when the CRD is generated, never dropped silently.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel

from kubefoundry_sdk._api.structure import Schema

_KEPT: Final[tuple[str, ...]] = (
    *("description", "type", "format", "enum", "pattern", "default", "minimum", "maximum"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
    *("required", "properties", "items", "additionalProperties", "anyOf"),
)
"""Keywords of a structural schema, in the order in which they are written."""

_DROPPED: Final = frozenset({"title", "examples", "$defs"})


class Inexpressible(ValueError):
    """A field of a model has no structural schema."""


def structural(model: type[BaseModel]) -> Schema:
    """Return the structural schema of `model`, ready for `openAPIV3Schema`.

    Raises:
        Inexpressible: A field has no documentation, or Kubernetes does not accept its type in a CRD. The text
            names it.
    """
    document = model.model_json_schema(by_alias=True)
    return _convert(document, document.get("$defs", {}), model.__name__, ())


def _convert(node: Schema, models: dict[str, Schema], path: str, inside: tuple[str, ...]) -> Schema:
    node = {key: value for key, value in node.items() if key not in _DROPPED}
    if "$ref" in node:
        name = node.pop("$ref").rsplit("/", 1)[-1]
        if name in inside:
            raise Inexpressible(f"{path}: {name} contains itself")
        return _convert({**models[name], **node}, models, path, (*inside, name))
    if "anyOf" in node:
        return _convert(_one_of(node, path), models, path, inside)
    if "const" in node:
        node["enum"] = [node.pop("const")]
    if node.get("default", ...) is None:
        del node["default"]
    schema: Schema = {}
    for key, value in node.items():
        schema |= _keyword(key, value, models, path, inside)
    return _typed(schema, path)


def _free_form(permitted: bool) -> Schema:
    # False needs no keyword: the API server prunes unknown fields in any case.
    return {"x-kubernetes-preserve-unknown-fields": True} if permitted else {}


def _keyword(key: str, value: Any, models: dict[str, Schema], path: str, inside: tuple[str, ...]) -> Schema:
    match key:
        case "properties":
            return {
                key: {
                    name: _property(child, models, f"{path}.{name}", inside) for name, child in value.items()
                }
            }
        case "additionalProperties" if isinstance(value, bool):
            return _free_form(value)
        case "items" | "additionalProperties":
            return {key: _convert(value, models, f"{path}[]", inside)}
        case "description":
            return {key: " ".join(value.split())}
    if key in _KEPT or key.startswith("x-kubernetes-"):
        return {key: value}
    raise Inexpressible(f"{path}: {key} has no place in a structural schema")


def _property(node: Schema, models: dict[str, Schema], path: str, inside: tuple[str, ...]) -> Schema:
    schema = _convert(node, models, path, inside)
    if not schema.get("description"):
        raise Inexpressible(f"{path}: has no documentation")
    return schema


def _one_of(node: Schema, path: str) -> Schema:
    """Return the schema of a union.

    An optional value becomes the value; an integer or string becomes Kubernetes' int-or-string.
    """
    rest = dict(node)
    choices = [choice for choice in rest.pop("anyOf") if choice != {"type": "null"}]
    if len(choices) == 1:
        return {**choices[0], **rest}
    if sorted(choice.get("type", "") for choice in choices) != ["integer", "string"]:
        raise Inexpressible(f"{path}: a union has no structural schema")
    bounds = {key: value for choice in choices for key, value in choice.items() if key != "type"}
    return {**bounds, **rest, "x-kubernetes-int-or-string": True}


def _typed(schema: Schema, path: str) -> Schema:
    if "x-kubernetes-int-or-string" in schema:
        schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    elif "type" not in schema:
        raise Inexpressible(f"{path}: has no type")
    elif schema["type"] == "integer":
        schema.setdefault("format", "int32")
    kept = {key: schema[key] for key in _KEPT if key in schema}
    return {**kept, **{key: schema[key] for key in sorted(schema.keys() - kept.keys())}}
