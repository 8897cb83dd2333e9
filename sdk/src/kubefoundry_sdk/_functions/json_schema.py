"""The JSON Schemas of the messages, for programs in other languages, and of a mapping's file."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.json_schema import models_json_schema

from kubefoundry_sdk._functions import messages
from kubefoundry_sdk._provider.contract import (
    Capabilities,
    Endpoint,
    Observation,
    Rendered,
    Replicas,
    SelectionRule,
)
from kubefoundry_sdk._provider.upstream_fields import Fields
from kubefoundry_sdk._provider.upstream_kind import Schema, UnsupportedSchema, UpstreamKind

_TYPES: Final = (
    *(Capabilities, Endpoint, Observation, Rendered, Replicas, SelectionRule),
    *(Fields, Schema, UnsupportedSchema, UpstreamKind),
)
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ATTRIBUTE: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def document() -> dict[str, Any]:
    """Return the schema of the messages: `$defs` has each request, each response, and the types in them."""
    models: list[type[BaseModel]] = [
        *(messages.request_model(function) for function in messages.RESULTS),
        *(messages.result_model(function) for function in messages.RESULTS),
        messages.ErrorResponse,
    ]
    _, schema = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/$defs/{model}"
    )
    return {
        "$schema": DIALECT,
        "title": "Messages of a program with a provider's functions",
        "description": "Requests and responses, one for each line (docs/functions.md).",
        "anyOf": [{"$ref": f"#/$defs/{model.__name__}"} for model in models],
        "$defs": _definitions(schema),
    }


def mapping_document() -> dict[str, Any]:
    """Return the schema of a mapping's file."""
    from kubefoundry_sdk._functions.mapping.document import MappingFile

    schema = MappingFile.model_json_schema(ref_template="#/$defs/{model}")
    definitions = _definitions(schema)
    del schema["$defs"]
    return {
        "$schema": DIALECT,
        "title": "A provider without code",
        **_plain(schema),
        "$defs": definitions,
    }


def _definitions(schema: Mapping[str, Any]) -> dict[str, Any]:
    definitions: dict[str, Any] = {name: _plain(part) for name, part in schema["$defs"].items()}
    for type_ in _TYPES:
        if type_.__name__ in definitions:
            _describe(definitions[type_.__name__], type_)
    return definitions


def _plain(part: Any) -> Any:
    """Return a schema without titles, with joined lines, and with unknown keys forbidden where keys are named."""
    if isinstance(part, list):
        return [_plain(item) for item in part]
    if not isinstance(part, Mapping):
        return part
    plain = {
        key: " ".join(value.split()) if key == "description" and isinstance(value, str) else _plain(value)
        for key, value in part.items()
        if not (key == "title" and isinstance(value, str))
    }
    if isinstance(plain.get("properties"), dict):
        plain.setdefault("additionalProperties", False)
    return plain


def _describe(definition: dict[str, Any], type_: type) -> None:
    """Move the descriptions of a type's attributes to its properties."""
    words = inspect.getdoc(type_) or ""
    summary, _, attributes = words.partition("\n\nAttributes:\n")
    definition["description"] = " ".join(summary.split())
    for name, text in _ATTRIBUTE.findall(attributes):
        if to_camel(name) in definition["properties"]:
            definition["properties"][to_camel(name)]["description"] = " ".join(text.split())
