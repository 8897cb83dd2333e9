"""Reads the Service of a server."""

from __future__ import annotations

from kubefoundry_sdk._api.kinds import Object


def leads_to_pods(service: Object) -> bool:
    """Check that the Service selects pods. A tenant can make it lead anywhere until the operator corrects it."""
    spec = service.get("spec") or {}
    return spec.get("type") != "ExternalName" and bool(spec.get("selector"))
