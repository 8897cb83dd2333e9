"""The owners of status fields, read from managedFields."""

from __future__ import annotations

from typing import Any

from kubefoundry_core.decision import REPORTED
from kubefoundry_sdk._api import managed_fields, names
from kubefoundry_sdk._api.kinds import Object

RELEASE = 240.0
"""Seconds until core has released the fields that a provider reports. It takes up to 40 on a busy machine."""


def owned_by(deployment: Object, manager: str) -> frozenset[str]:
    """Return the names of the status fields, and the types of the conditions, of which the manager owns a part."""
    fields: Any = managed_fields.owned(deployment, manager, "status") or {}
    status = fields.get("f:status", {})
    return frozenset({name.removeprefix("f:") for name in status} | managed_fields.conditions(status).keys())


def is_released_by_core(deployment: Object) -> bool:
    """Check whether core owns no part of the fields that a provider reports. It then stops writing them."""
    return REPORTED.isdisjoint(owned_by(deployment, names.CORE_MANAGER))
