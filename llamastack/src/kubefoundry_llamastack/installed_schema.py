"""Reads the schema of the CRD in the cluster: of this release, of an earlier one, or of the existing operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubefoundry_llamastack.names import LLSD
from kubefoundry_sdk._api.kinds import Object


def fitting(status: Object, definition: Object | None) -> Object:
    """Return the status without the fields and the values that the CRD lacks.

    The API server refuses a whole server-side apply with one of them.
    """
    schema = _schema(definition)
    if schema is None:
        return status
    kept: Object = _without_unknown_fields(status, _field(schema, "status"))
    return kept


def drops_our_fields(definition: Object | None) -> bool:
    """Check whether the CRD is the existing operator's, which drops externalProviders."""
    schema = _schema(definition)
    if schema is None:
        return False
    server = _field(_field(schema, "spec"), "server")
    return "externalProviders" not in (server.get("properties") or {})


def _schema(definition: Object | None) -> Object | None:
    """Return the schema of the version that the operator uses, None without CRD or version."""
    for version in definition["spec"]["versions"] if definition else ():
        if version["name"] == LLSD.version:
            schema: Object = (version.get("schema") or {}).get("openAPIV3Schema") or {}
            return schema
    return None


def _field(schema: Object, name: str) -> Object:
    field: Object = (schema.get("properties") or {}).get(name) or {}
    return field


def _without_unknown_fields(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_without_unknown_fields(item, schema.get("items") or {}) for item in value]
    fields = schema.get("properties")
    if not isinstance(value, dict) or not fields or schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    return {
        name: _without_unknown_fields(child, fields[name])
        for name, child in value.items()
        if name in fields and child in fields[name].get("enum", (child,))
    }
