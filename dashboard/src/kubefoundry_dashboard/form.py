"""Build a form from the CRD's schema, and a spec from a filled-in form. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.output import as_yaml
from kubefoundry_cli.spec_path import with_value
from kubefoundry_sdk._api import foreign_yaml, spec_limits
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.structure import Schema
from kubefoundry_sdk._api.validation import schema

FIRST: Final = (
    "model.id",
    "engine.type",
    "resources.gpu.count",
    "resources.memory",
    "image",
    "provider.name",
)
"""Fields that most models need. The page folds the others."""

PREFIX: Final = "spec."
"""Prefix of the spec's fields in the form, so that no other input is taken for one of them."""

DEEPEST: Final = 32
"""Levels of a YAML value, at most."""
LONGEST: Final = 2 * spec_limits.SIZE
"""Characters of submitted YAML, at most: the largest spec, and metadata around it."""


@dataclass(frozen=True, slots=True)
class Field:
    """An input of the form.

    Attributes:
        path: Path of the field in the spec, with dots.
        kind: Type of the input. `yaml` is for maps and lists, whose number of entries is free.
        value: The present value, empty if the spec does not set it.
        hint: The schema's description.
        default: The schema's default, empty if there is none.
        choices: The permitted values of a `choice`.
        least: The minimum of a `number`.
    """

    path: str
    kind: Literal["text", "number", "choice", "yaml"]
    value: str
    hint: str
    default: str
    choices: tuple[str, ...] = ()
    least: int | None = None

    @property
    def name(self) -> str:
        """Return the input's name in the form."""
        return PREFIX + self.path


@dataclass(frozen=True, slots=True)
class Section:
    """The fields below one property of the spec."""

    title: str
    hint: str
    fields: tuple[Field, ...]

    @property
    def used(self) -> bool:
        """Check whether a field of the section is filled in."""
        return any(field.value for field in self.fields)


def sections(spec: Object) -> list[Section]:
    """Return the form's sections: the fields of FIRST, then one section per property of the spec."""
    fields = {field.path: field for field in _fields(schema(), spec, ())}
    first = Section("The model", "", tuple(fields[path] for path in FIRST))
    rest = [
        Section(
            name,
            str(property_schema.get("description", "")),
            tuple(
                field
                for path, field in fields.items()
                if path not in FIRST and (path == name or path.startswith(f"{name}."))
            ),
        )
        for name, property_schema in schema()["properties"].items()
    ]
    return [first, *(section for section in rest if section.fields)]


def _fields(shape: Schema, value: Any, path: tuple[str, ...]) -> Iterator[Field]:
    properties = shape.get("properties")
    if properties:
        for name, property_schema in properties.items():
            yield from _fields(
                property_schema, value.get(name) if isinstance(value, Mapping) else None, (*path, name)
            )
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
    """Return the spec of a filled-in form, without the empty fields.

    Raises:
        Failure: A field has unreadable YAML.
    """
    spec: Object = {}
    for field in _fields(schema(), {}, ()):
        text = filled.get(field.name, "").strip()
        if text:
            spec = with_value(spec, field.path.split("."), _value(field, text))
    return spec


def _value(field: Field, text: str) -> Any:
    if field.kind == "number":
        # Other text stays text, and the schema's validation rejects it with its own message.
        return int(text) if text.lstrip("-").isdecimal() and len(text) < 20 else text
    if field.kind == "choice" and field.choices == ("true", "false"):
        return {"true": True, "false": False}.get(text, text)
    return yaml_value(text, field.path) if field.kind == "yaml" else text


def yaml_value(text: str, where: str) -> Any:
    """Decode a YAML value. References are rejected, because a few lines of them can expand to gigabytes.

    Raises:
        Failure: The text is not YAML, too large or too deep, or has references.
    """
    try:
        return foreign_yaml.decode(text, depth=DEEPEST * 4, limit=LONGEST)
    except foreign_yaml.Unreadable as error:
        raise Failure(f"cannot read {where}: it {error}", Exit.USAGE) from error


def missing(spec: Object, names: Sequence[str] = ("model.id", "engine.type")) -> bool:
    """Check whether all the named fields are empty, so that there is nothing to judge yet."""
    return not any((spec.get(name.split(".")[0]) or {}).get(name.split(".")[1]) for name in names)
