"""Fits the status to the CRD in the cluster, which may be that of an earlier release.

The API server refuses a whole server-side apply if it has a field that the CRD lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubefoundry_llamastack.names import LLSD
from kubefoundry_sdk._api.kinds import Object


def fitting(status: Object, definition: Object | None) -> Object:
    """Return the status without the fields that the CRD lacks."""
    for version in (definition or {}).get("spec", {}).get("versions", ()):
        if version["name"] == LLSD.version:
            schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
            kept: Object = _known(status, (schema.get("properties") or {}).get("status") or {})
            return kept
    return status


def _known(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_known(item, schema.get("items") or {}) for item in value]
    fields = schema.get("properties")
    if not isinstance(value, dict) or not fields or schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    return {name: _known(child, fields[name]) for name, child in value.items() if name in fields}
