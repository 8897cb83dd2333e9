"""Applies a structural schema as the API server does: defaults, and the checks of types, enums and ranges.

Objects stored before the CRD had a rule were never checked by the API server, and a webhook has to describe an error
in a sentence, so the same schema is applied here. Source of the order and of the treatment of null:
apiextensions-apiserver v0.26, pkg/apiserver/schema/defaulting. `kubefoundry_sdk.testing.structural` is separate: it
checks objects of any CRD, whose patterns and keywords have no sentence here.
"""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from kubefoundry_sdk._api.formats import MEANINGS

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """An invalid field.

    Attributes:
        path: The field, from `spec`.
        message: The reason, to follow the path.
    """

    path: str
    message: str


_UNQUOTED: Final = {"integer": re.compile(r"[0-9]+"), "boolean": re.compile("true|false")}
"""Texts that have the type in YAML without quotes."""


_TYPES: Final[dict[object, tuple[type, str]]] = {
    "object": (dict, "a map of fields"),
    "array": (list, "a list"),
    "string": (str, "text"),
    "boolean": (bool, "true or false"),
}
"""Type of a schema -> its Python type, and its name in messages."""


@cache
def of_spec(kind: str) -> Schema:
    """Return the structural schema of a kind's spec, without its rules.

    `make crds` writes it from the typed model into a file. Importing the models and building it would take 0.2 s and
    11 MB, and only providers need the models.

    Args:
        kind: The kind in lower case, `modeldeployment` or `inferenceproviderconfig`.
    """
    schema: Schema = json.loads(pkgutil.get_data(__package__ or "", f"{kind}.schema.json") or b"")
    return schema


def defaulted(value: Any, schema: Schema) -> Any:
    """Return a copy of `value` without nulls and with the schema's defaults, as the API server stores it."""
    if isinstance(value, list):
        return [defaulted(item, schema.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    fields, others = schema.get("properties", {}), schema.get("additionalProperties") or {}
    kept = {key: child for key, child in value.items() if child is not None or not (others or key in fields)}
    whole = kept | _defaults(fields) | kept
    return {key: defaulted(child, fields.get(key, others)) for key, child in whole.items()}


def _defaults(fields: Mapping[str, Schema]) -> dict[str, Any]:
    return {key: field["default"] for key, field in fields.items() if "default" in field}


def problems(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    """Yield the parts of `value` that the schema refuses; nothing below a value of the wrong type."""
    wrong = _wrong_type(value, schema)
    if wrong:
        yield Problem(path, f"must be {wrong}, not {_shown(value)}{_quoting(value, schema)}")
    elif isinstance(value, dict):
        yield from _object_problems(value, schema, path)
    elif isinstance(value, list):
        yield from _list_problems(value, schema, path)
    elif isinstance(value, str):
        yield from _text_problems(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            yield Problem(path, f"must be at least {schema['minimum']}, not {_shown(value)}")
        if value > schema.get("maximum", value):
            yield Problem(path, f"must be at most {schema['maximum']}, not {_shown(value)}")


def _wrong_type(value: Any, schema: Schema) -> str | None:
    """Return the type that the schema requires, if `value` has another one."""
    is_whole = isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0
    if schema.get("x-kubernetes-int-or-string"):
        return None if is_whole or isinstance(value, str) else MEANINGS[schema["pattern"]]
    if schema.get("type") == "integer":
        return None if is_whole else "a whole number"
    required, name = _TYPES.get(schema.get("type"), (object, ""))
    return None if isinstance(value, required) else name


def _quoting(value: Any, schema: Schema) -> str:
    """Return advice about quotes for a value whose type depends on them in YAML; empty if quotes do not matter."""
    if isinstance(value, bool | int | float):
        is_quantity = schema.get("x-kubernetes-int-or-string") and not isinstance(value, bool)
        return ": put it in quotes" if schema.get("type") == "string" or is_quantity else ""
    unquoted = _UNQUOTED.get(str(schema.get("type")))
    return ": remove the quotes" if isinstance(value, str) and unquoted and unquoted.fullmatch(value) else ""


def _object_problems(value: dict[str, Any], schema: Schema, path: str) -> Iterator[Problem]:
    for key in schema.get("required", ()):
        if key not in value:
            yield Problem(f"{path}.{key}", "is required")
    yield from _count_problems(len(value), schema.get("maxProperties"), path)
    fields, others = schema.get("properties", {}), schema.get("additionalProperties")
    for key, child in value.items():
        if key in fields:
            yield from problems(child, fields[key], f"{path}.{key}")
        elif others is not None:
            yield from problems(child, others, f"{path}[{key}]")


def _list_problems(value: list[Any], schema: Schema, path: str) -> Iterator[Problem]:
    yield from _count_problems(len(value), schema.get("maxItems"), path)
    if len(value) < schema.get("minItems", 0):
        yield Problem(path, "must not be empty")
    keys = schema.get("x-kubernetes-list-map-keys", ())
    seen: set[str] = set()
    for index, item in enumerate(value):
        yield from problems(item, schema.get("items", {}), f"{path}[{index}]")
        if not keys or not isinstance(item, dict):
            continue
        identity = [item.get(key) for key in keys]
        text = json.dumps(identity)
        if text in seen:
            yield Problem(f"{path}[{index}]", f"repeats {', '.join(keys)} {_shown(*identity)}")
        seen.add(text)


def _count_problems(count: int, most: int | None, path: str) -> Iterator[Problem]:
    if most is not None and count > most:
        yield Problem(path, f"may have {most} entries at most, not {count}")


def _text_problems(value: str, schema: Schema, path: str) -> Iterator[Problem]:
    if "enum" in schema and value not in schema["enum"]:
        yield Problem(path, f"must be one of {', '.join(schema['enum'])}, not {_shown(value)}")
    if len(value) > schema.get("maxLength", len(value)):
        yield Problem(path, f"may have {schema['maxLength']} characters at most, not {len(value)}")
    elif len(value) < schema.get("minLength", 0):
        yield Problem(path, "must not be empty")
    elif "pattern" in schema and not _pattern(schema["pattern"]).fullmatch(value):
        yield Problem(path, f"must be {MEANINGS[schema['pattern']]}, not {_shown(value)}")


@lru_cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _shown(*values: Any) -> str:
    text = ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
    return text if len(text) <= 80 else f"{text[:77]}..."
