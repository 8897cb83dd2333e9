"""The resources that the server serves: built-in kinds and those of installed CRDs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk.testing._server import builtin, schemas
from kubefoundry_sdk.testing._server.types import Type, of_resource

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """A served version of a resource.

    Attributes:
        group: The group, empty for the core group.
        version: The version.
        plural: The name in URLs.
        kind: The kind.
        list_kind: The kind of a list.
        namespaced: Whether its objects are in namespaces.
        schema: The structural schema.
        custom: Whether a CRD defines it.
        has_status: Whether it has a status subresource.
        empty: What an object that does not exist consists of: for a built-in kind, Go's structs.
        scale: The paths of the scale subresource.
        selectable: JSON paths for field selectors, apart from name and namespace.
        type: The type for server-side apply.
        defaults: The parts of the schema that set defaults.
        served: Stored states in this version, by uid and resource version: each is read several times.
    """

    group: str
    version: str
    plural: str
    kind: str
    list_kind: str
    namespaced: bool
    schema: Schema
    custom: bool
    has_status: bool
    empty: Object = field(default_factory=dict)
    scale: Mapping[str, str] | None = None
    selectable: tuple[str, ...] = ()
    type: Type = field(init=False)
    defaults: Schema = field(init=False, repr=False)
    served: dict[tuple[str, str], Object] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", of_resource(self.schema))
        object.__setattr__(self, "defaults", schemas.defaults_of(self.schema))

    @property
    def api_version(self) -> str:
        """Return `apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_complete(self) -> bool:
        """Return whether `schema` has all fields of the kind: a field that it does not have does not exist."""
        return self.custom or self.plural in builtin.COMPLETE

    @property
    def storage(self) -> tuple[str, str]:
        """Return the key under which objects of all its versions are stored."""
        return self.group, self.plural


BUILT_IN: Final[tuple[Resource, ...]] = tuple(
    Resource(
        kind.group,
        kind.version,
        kind.plural,
        kind.kind,
        f"{kind.kind}List",
        kind.namespaced,
        schema,
        False,
        has_status,
        builtin.EMPTY.get(kind.plural, {}),
    )
    for kind, schema, has_status in builtin.KINDS
)


def of_crd(crd: Object) -> list[Resource]:
    """Return the served versions of a CRD."""
    spec = crd["spec"]
    names = spec["names"]
    return [
        Resource(
            spec["group"],
            version["name"],
            names["plural"],
            names["kind"],
            names.get("listKind") or f"{names['kind']}List",
            spec["scope"] == "Namespaced",
            version["schema"]["openAPIV3Schema"],
            True,
            "status" in (version.get("subresources") or {}),
            {},
            (version.get("subresources") or {}).get("scale"),
            tuple(item["jsonPath"] for item in version.get("selectableFields") or ()),
        )
        for version in spec["versions"]
        if version.get("served")
    ]
