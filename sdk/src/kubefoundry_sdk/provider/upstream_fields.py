"""What an installed CRD declares, and from that how to write it: the `probe` of a provider, as a table.

probe = partial(by_fields, {"v1": Fields(needed=("spec.model",), optional={"suspend": "spec.suspend"})})
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.contract import Schema, UnsupportedSchema


@dataclass(frozen=True, slots=True)
class Fields:
    """What a provider writes into one version of its CRD.

    needed: paths without which nothing can be written (`spec.components[].name`, `spec.services{}.replicas`: `[]` an
        item of a list, which may be left out, `{}` a value of a map).
    optional: paths by the name of the feature that each one shows (`Schema.features`).
    lost: what a ModelDeployment cannot ask for without that feature, a few words each (`Schema.lost`).
    """

    needed: tuple[str, ...] = ()
    optional: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)


def by_fields(known: Mapping[str, Fields], crd: Object) -> Schema | UnsupportedSchema:
    """How to write this CRD, judged by fields and not by releases. Never raises, whatever the CRD holds.

    known: the versions that the provider can write, the best one first. The stored version is used where it is among
    them: another served one may lose data (contract §4.8). An absent optional field takes its feature away.
    """
    spec = _mapping(crd.get("spec"))
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


def served_version(crd: Object, known: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Of the versions that are served and known, the stored one, else the first of `known`; None for none."""
    listed = _mapping(crd.get("spec")).get("versions")
    served = {
        item["name"]: item
        for item in (listed if isinstance(listed, list) else ())
        if isinstance(item, Mapping) and item.get("served") is True and isinstance(item.get("name"), str)
    }
    found = [served[name] for name in known if name in served]
    return next((item for item in found if item.get("storage") is True), found[0] if found else None)


def version_schema(version: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `openAPIV3Schema` of one of a CRD's versions; empty where there is none."""
    return _mapping(_mapping(version.get("schema")).get("openAPIV3Schema"))


def declared(schema: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    """The schema at a path (see `Fields.needed`), None where it is not declared."""
    for step in _steps(path):
        if step in ("additionalProperties", "items"):
            found = schema.get(step)
        else:
            found = _mapping((_mapping(schema.get("items")) or schema).get("properties")).get(step)
        if not isinstance(found, Mapping):
            return None
        schema = found
    return schema


def _steps(path: str) -> Iterator[str]:
    for part in path.split("."):
        yield part.rstrip("{}[]")
        if part.endswith("{}"):
            yield "additionalProperties"
        elif part.endswith("[]"):
            yield "items"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
