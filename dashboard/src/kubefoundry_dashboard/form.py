"""A form from the CRD's own schema, and the spec that a filled-in one stands for. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.output import as_yaml
from kubefoundry_cli.spec_path import with_value
from kubefoundry_sdk.api import extent, foreign_yaml
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.schema import Schema
from kubefoundry_sdk.api.validation import schema

FIRST: Final = (
    "model.id",
    "engine.type",
    "resources.gpu.count",
    "resources.memory",
    "image",
    "provider.name",
)
"""Fields that nearly everybody fills in; the others are folded."""

PREFIX: Final = "spec."
"""Of the names of fields, so that no other part of a form is taken for one."""

DEEPEST: Final = 32
"""Levels of a YAML value that are read."""
LONGEST: Final = 2 * extent.SIZE
"""Characters of YAML that are read: a spec, as large as one may be, and what stands around it."""


@dataclass(frozen=True, slots=True)
class Field:
    """kind: how it is asked for; `yaml` where the schema allows any number of parts. hint: the schema's own words."""

    path: str
    kind: Literal["text", "number", "choice", "yaml"]
    value: str
    hint: str
    default: str
    choices: tuple[str, ...] = ()
    least: int | None = None

    @property
    def name(self) -> str:
        """In the form."""
        return PREFIX + self.path


@dataclass(frozen=True, slots=True)
class Section:
    """Fields below one property of the spec; used: whether one of them is filled in."""

    title: str
    hint: str
    fields: tuple[Field, ...]

    @property
    def used(self) -> bool:
        return any(field.value for field in self.fields)


def sections(spec: Object) -> list[Section]:
    """First those of FIRST, then the properties of the spec in their order."""
    made = {field.path: field for field in _fields(schema(), spec, ())}
    first = Section("The model", "", tuple(made[path] for path in FIRST))
    rest = [
        Section(
            name,
            str(part.get("description", "")),
            tuple(
                field
                for path, field in made.items()
                if path not in FIRST and (path == name or path.startswith(f"{name}."))
            ),
        )
        for name, part in schema()["properties"].items()
    ]
    return [first, *(section for section in rest if section.fields)]


def _fields(shape: Schema, value: Any, path: tuple[str, ...]) -> Iterator[Field]:
    properties = shape.get("properties")
    if properties:
        for name, part in properties.items():
            yield from _fields(part, value.get(name) if isinstance(value, Mapping) else None, (*path, name))
        return
    kind = _kind(shape)
    choices = tuple(map(str, shape.get("enum", ()))) or (
        ("true", "false") if shape.get("type") == "boolean" else ()
    )
    yield Field(
        ".".join(path),
        kind,
        _shown(value, kind),
        str(shape.get("description", "")),
        _shown(shape.get("default"), kind),
        choices,
        shape.get("minimum") if kind == "number" else None,
    )


def _kind(shape: Schema) -> Literal["text", "number", "choice", "yaml"]:
    if shape.get("enum") or shape.get("type") == "boolean":
        return "choice"
    if shape.get("type") == "integer":
        return "number"
    return "text" if shape.get("type") == "string" or shape.get("x-kubernetes-int-or-string") else "yaml"


def _shown(value: Any, kind: str) -> str:
    if value is None:
        return ""
    if kind == "yaml" or isinstance(value, dict | list):
        return as_yaml([value]).strip()
    return str(value).lower() if isinstance(value, bool) else str(value)


def spec_of(filled: Mapping[str, str]) -> Object:
    """The spec of a filled-in form: what is left empty is left out. Raises Failure."""
    spec: Object = {}
    for field in _fields(schema(), {}, ()):
        given = filled.get(field.name, "").strip()
        if given:
            spec = with_value(spec, field.path.split("."), _value(field, given))
    return spec


def _value(field: Field, given: str) -> Any:
    if field.kind == "number":
        # what is no number is refused with the schema's own words
        return int(given) if given.lstrip("-").isdecimal() and len(given) < 20 else given
    if field.kind == "choice" and field.choices == ("true", "false"):
        return {"true": True, "false": False}.get(given, given)
    return plain_yaml(given, field.path) if field.kind == "yaml" else given


def plain_yaml(text: str, where: str) -> Any:
    """A YAML value without references, of which a few lines can be gigabytes. Raises Failure."""
    try:
        return foreign_yaml.decode(text, depth=DEEPEST * 4, limit=LONGEST)
    except foreign_yaml.Unreadable as error:
        raise Failure(f"cannot read {where}: it {error}", Exit.USAGE) from error


def missing(spec: Object, names: Sequence[str] = ("model.id", "engine.type")) -> bool:
    """Whether nothing has been filled in yet that a verdict could be about."""
    return not any((spec.get(name.split(".")[0]) or {}).get(name.split(".")[1]) for name in names)
