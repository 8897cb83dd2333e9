"""Writes the files about the values of a chart: values.yaml, values.schema.json, and tables for the documentation."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

WIDTH: Final = 118
SCHEMA: Final = "https://json-schema.org/draft/2020-12/schema"

Overrides = Mapping[str, Any]
"""Path of a value -> its default, where another file decides."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a chart, with the path by which --set names it."""

    path: str
    default: Any
    field: FieldInfo

    @property
    def group(self) -> BaseModel | None:
        """Return the default if it is an object with values of its own, otherwise None."""
        return self.default if isinstance(self.default, BaseModel) else None


def values(defaults: BaseModel, overrides: Overrides, prefix: str = "") -> Iterator[Value]:
    """Yield each value of the chart. Objects come before the values below them.

    Args:
        defaults: The values of the chart.
        overrides: Other defaults. A path below them is not yielded.
        prefix: The path of `defaults`.
    """
    for name, field in type(defaults).model_fields.items():
        path = f"{prefix}{name}"
        value = Value(path, overrides.get(path, getattr(defaults, name)), field)
        yield value
        if value.group is not None:
            yield from values(value.group, overrides, f"{path}.")


def values_yaml(defaults: BaseModel, overrides: Overrides, header: str) -> str:
    """Return the text of values.yaml."""
    lines = [header.rstrip("\n")]
    for value in values(defaults, overrides):
        depth = value.path.count(".")
        indent = "  " * depth
        if not depth:
            lines.append("")
        lines += textwrap.wrap(
            value.field.description or "",
            WIDTH,
            initial_indent=f"{indent}# ",
            subsequent_indent=f"{indent}# ",
        )
        name = value.path.rpartition(".")[2]
        if value.group is not None:
            lines.append(f"{indent}{name}:")
        elif isinstance(value.default, dict) and value.default:
            block = yaml.safe_dump(value.default, sort_keys=False)
            lines += [f"{indent}{name}:", *textwrap.indent(block, f"{indent}  ").splitlines()]
        else:
            lines.append(f"{indent}{name}: {_scalar(value.default)}")
    return "\n".join(lines) + "\n"


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def schema(defaults: BaseModel) -> str:
    """Return the text of values.schema.json.

    `global` is allowed, because Helm adds it to a dependency's values, and `enabled` as the dependency's condition.
    """
    document = type(defaults).model_json_schema()
    for node in (document, *document.get("$defs", {}).values()):
        fields = node["properties"].items()
        node["required"] = [name for name, field in fields if not _may_be_null(field)]
    document["properties"] |= {"global": {"type": "object"}, "enabled": {"type": "boolean"}}
    described = {"$schema": SCHEMA, **_cleaned(document)}
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def _may_be_null(field: dict[str, Any]) -> bool:
    """Check whether a template renders the field if it is null, with which Helm removes the default."""
    return (
        field.get("type") in ("array", "object")
        or {"type": "null"} in field.get("anyOf", [])
        or field.get("$ref") == "#/$defs/Resources"
    )


def _cleaned(node: Any) -> Any:
    """Return a schema without titles and defaults, which values.yaml has."""
    if isinstance(node, list):
        return [_cleaned(item) for item in node]
    if not isinstance(node, dict):
        return node
    result = {}
    for key, value in _with_named_fields(node).items():
        if key in ("properties", "$defs"):
            result[key] = {name: _cleaned(child) for name, child in value.items()}
        elif key not in ("title", "default"):
            result[key] = _cleaned(value)
    return result


def _with_named_fields(node: dict[str, Any]) -> dict[str, Any]:
    """Return a map's schema with its names as fields. For `propertyNames`, Helm reports a path outside the map."""
    names = node.get("propertyNames")
    if not names:
        return node
    allowed = dict.fromkeys(names.get("enum") or [names["const"]], node["additionalProperties"])
    rest = {key: value for key, value in node.items() if key != "propertyNames"}
    return {**rest, "properties": allowed, "additionalProperties": False}


def table(defaults: BaseModel, overrides: Overrides) -> str:
    """Return a Markdown table of the values."""
    lines = ["| value | default | |", "|---|---|---|"]
    for value in values(defaults, overrides):
        text = (value.field.description or "").replace("|", "\\|")
        default = "" if value.group else f"`{_scalar(value.default)}`"
        lines.append(f"| `{value.path}` | {default} | {text} |")
    return "\n".join(lines) + "\n"
