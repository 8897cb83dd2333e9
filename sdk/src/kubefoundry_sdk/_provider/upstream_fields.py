"""Chooses how to write an installed CRD by the fields that it declares: a provider's `probe` as a table.

probe = partial(by_fields, {"v1": Fields(needed=("spec.model",), optional={"suspend": "spec.suspend"})})
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import mapping, mappings
from kubefoundry_sdk._provider.upstream_kind import Schema, UnsupportedSchema


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields that a provider writes into one version of its CRD.

    Attributes:
        needed: Paths that every write needs (`spec.components[].name`, `spec.services{}.replicas`). `[]` is an
            item of a list and may be omitted; `{}` is a value of a map.
        optional: For each feature, the path that a CRD with the feature declares (`Schema.features`).
        lost: For each feature, a few words for the requests that need it (`Schema.lost`).
    """

    needed: tuple[str, ...] = ()
    optional: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)


def by_fields(known: Mapping[str, Fields], crd: Object) -> Schema | UnsupportedSchema:
    """Return the schema to write this CRD, chosen by its fields and not by the release.

    Never raises, even if the CRD is malformed. The stored version is used if the provider can write it, because
    another served version may lose data (contract §4.10). A missing optional field removes its feature.

    Args:
        known: The versions that the provider can write, the best one first.
        crd: The CustomResourceDefinition.

    Returns:
        The schema to write, or the needed fields that are missing.
    """
    spec = mapping(crd.get("spec"))
    served = served_version(crd, known)
    if served is None:
        return UnsupportedSchema(tuple(f"{spec.get('group')}/{name}" for name in known))
    schema = version_schema(served)
    fields = known[served["name"]]
    missing = tuple(path for path in fields.needed if declared(schema, path) is None)
    if missing:
        return UnsupportedSchema(missing)
    features = {name for name, path in fields.optional.items() if declared(schema, path) is not None}
    lost = tuple(words for feature, words in fields.lost.items() if feature not in features)
    return Schema(f"{spec.get('group')}/{served['name']}", frozenset(features), lost)


def served_version(crd: Object, versions: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the stored version if it is served and among `versions`.

    Otherwise return the first of `versions` that is served, or None if there is none.
    """
    served = {
        item["name"]: item
        for item in mappings(mapping(crd.get("spec")).get("versions"))
        if item.get("served") is True and isinstance(item.get("name"), str)
    }
    candidates = [served[name] for name in versions if name in served]
    return next(
        (item for item in candidates if item.get("storage") is True), candidates[0] if candidates else None
    )


def version_schema(version: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `openAPIV3Schema` of one version of a CRD; empty if there is none."""
    return mapping(mapping(version.get("schema")).get("openAPIV3Schema"))


def declared(schema: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    """Return the schema at a path (see `Fields.needed`), or None if the CRD does not declare it."""
    for step in _steps(path):
        if step in ("additionalProperties", "items"):
            child = schema.get(step)
        else:
            child = mapping((mapping(schema.get("items")) or schema).get("properties")).get(step)
        if not isinstance(child, Mapping):
            return None
        schema = child
    return schema


def _steps(path: str) -> Iterator[str]:
    for part in path.split("."):
        yield part.rstrip("{}[]")
        if part.endswith("{}"):
            yield "additionalProperties"
        elif part.endswith("[]"):
            yield "items"
