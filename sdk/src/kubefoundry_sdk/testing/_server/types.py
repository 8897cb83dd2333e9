"""How server-side apply sees a kind: which maps and lists are merged, and by which keys.

Made from a structural schema, as kube-openapi's schemaconv does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

ListType = Literal["atomic", "set", "map"]
Schema = Mapping[str, Any]


@dataclass(slots=True, eq=False)
class MapType:
    """Maps and objects.

    Attributes:
        fields: The declared fields.
        others: The type of all other keys; None if they are not declared.
        atomic: Whether the map has one owner.
        defaults: Defaults of the fields, which may be keys of a list-map.
    """

    fields: dict[str, Type] = field(default_factory=dict)
    others: Type | None = None
    atomic: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def of(self, name: str) -> Type | None:
        """Return the type of a key, None if it is not declared."""
        return self.fields.get(name, self.others)


@dataclass(slots=True, eq=False)
class ListOf:
    """Lists: the type of the items, how lists are merged, and the keys of a list-map."""

    items: Type
    relation: ListType = "atomic"
    keys: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Type:
    """The kinds of values that are allowed at a place; several if the type is only known from the value.

    `scalar` is `string`, `numeric`, `boolean`, or `untyped` for any.
    """

    map: MapType | None = None
    list: ListOf | None = None
    scalar: str | None = None

    def handler(self, value: Any) -> MapType | ListOf | str | None:
        """Return the part for a value; of several parts the map's for null (typed.deduceAtom, handleAtom)."""
        if isinstance(value, dict) and self.map:
            return self.map
        if isinstance(value, list) and self.list:
            return self.list
        if isinstance(value, str | int | float | bool) and self.scalar:
            return self.scalar
        return self.map or self.scalar or self.list


def _free_form(atomic: bool) -> Type:
    kind = Type(scalar="untyped")
    kind.list = ListOf(kind)
    kind.map = MapType(others=kind, atomic=atomic)
    return kind


DEDUCED: Final = _free_form(atomic=False)
"""Free-form content: maps are merged by key, lists have one owner."""

_UNTYPED: Final = _free_form(atomic=True)

_TEXT: Final = Type(scalar="string")
_NUMBER: Final = Type(scalar="numeric")
_TEXTS: Final = Type(map=MapType(others=_TEXT))
_OWNER: Final = Type(
    map=MapType(
        fields={
            **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _TEXT),
            **dict.fromkeys(("blockOwnerDeletion", "controller"), Type(scalar="boolean")),
        },
        atomic=True,
    )
)

OBJECT_META: Final = Type(
    map=MapType(
        fields={
            **dict.fromkeys(
                ("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink"), _TEXT
            ),
            **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), Type(scalar="untyped")),
            **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _NUMBER),
            "labels": _TEXTS,
            "annotations": _TEXTS,
            "finalizers": Type(list=ListOf(_TEXT, "set")),
            "ownerReferences": Type(list=ListOf(_OWNER, "map", ("uid",))),
            "managedFields": Type(list=ListOf(DEDUCED)),
        }
    )
)


def of_schema(schema: Schema, preserved: bool = False) -> Type:
    """Return the type of a structural schema."""
    preserved = preserved or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    match schema.get("type"):
        case "object":
            return Type(map=_map(schema, preserved))
        case "array":
            return Type(list=_list(schema, preserved))
        case "integer" | "number":
            return _NUMBER
        case "boolean":
            return Type(scalar="boolean")
        case "string":
            # With any other format every scalar is accepted by an apply; validation refuses it later.
            return Type(scalar="untyped") if schema.get("format", "byte") != "byte" else _TEXT
        case _:
            return Type(_map(schema, preserved), _list(schema, preserved), "untyped")


def of_resource(schema: Schema) -> Type:
    """Return the type of a whole custom resource, with the metadata that its schema need not declare."""
    kind = of_schema(schema)
    if kind.map:
        kind.map.fields |= {"apiVersion": _TEXT, "kind": _TEXT, "metadata": OBJECT_META}
    return kind


def _map(schema: Schema, preserved: bool) -> MapType:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        rest: Type | None = of_schema(others, preserved)
    elif others or (others is None and (preserved or not properties)):
        rest = DEDUCED
    else:
        rest = None
    kind = MapType(
        {name: of_schema(child, preserved) for name, child in properties.items()},
        rest,
        schema.get("x-kubernetes-map-type") == "atomic",
        {name: child["default"] for name, child in properties.items() if "default" in child},
    )
    if schema.get("x-kubernetes-embedded-resource"):
        kind.fields = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": OBJECT_META, **kind.fields}
    return kind


def _list(schema: Schema, preserved: bool) -> ListOf:
    items = of_schema(schema["items"], preserved) if "items" in schema else _UNTYPED
    relation: ListType = schema.get("x-kubernetes-list-type", "atomic")
    return ListOf(items, relation, tuple(schema.get("x-kubernetes-list-map-keys", ())))
