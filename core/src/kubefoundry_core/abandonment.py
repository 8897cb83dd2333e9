"""What a provider leaves behind when its shim is gone: finalizers and published status (contract §3, §4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kubefoundry_sdk.api import managed_fields, names
from kubefoundry_sdk.api.kinds import Object

SILENCE: Final = 180.0
"""Seconds without a new heartbeat after which a provider counts as gone (contract §5)."""

_SUFFIX: Final = names.provider_manager("")

Heartbeats = Mapping[str, float]
"""Seconds since the heartbeat of each registered provider was last seen to change."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """names: what is abandoned now. again: seconds until more may be, None when nothing more can come."""

    names: tuple[str, ...]
    again: float | None


def orphaned_finalizers(
    deployment: Object, heartbeats: Heartbeats, timeout: float, now: datetime
) -> Abandoned:
    """Finalizers of providers that are gone, on an object whose deletion has waited long enough for them.

    timeout: seconds from deletionTimestamp that a shim has to clean up (003 §4.7).
    """
    meta = deployment["metadata"]
    deleted = meta.get("deletionTimestamp")
    if not deleted:
        return Abandoned((), None)
    left = timeout - (now - datetime.fromisoformat(deleted)).total_seconds()
    return _abandoned(
        {
            finalizer: max(left, _gone_in(_provider(finalizer.removeprefix(names.PREFIX)), heartbeats))
            for finalizer in meta.get("finalizers") or ()
            if finalizer.startswith(names.PREFIX) and finalizer.endswith(_SUFFIX)
        }
    )


def dead_managers(deployment: Object, heartbeats: Heartbeats) -> Abandoned:
    """Field managers of providers that are gone and still own status, though another provider is chosen.

    A silent provider that is still the chosen one keeps what it published: its model may well serve on.
    """
    current = ((deployment.get("status") or {}).get("provider") or {}).get("name")
    if not current:
        return Abandoned((), None)
    return _abandoned(
        {
            manager: _gone_in(_provider(manager), heartbeats)
            for manager in managed_fields.managers(deployment, "status")
            if manager.endswith(_SUFFIX) and manager != names.provider_manager(current)
        }
    )


def remaining(deployment: Object) -> str:
    """The upstream object that nobody will delete now, as far as the status names it."""
    provider = (deployment.get("status") or {}).get("provider") or {}
    if not provider.get("resourceName"):
        return "none known"
    namespace = deployment["metadata"]["namespace"]
    return f"{provider.get('resourceKind', 'object')} {namespace}/{provider['resourceName']}"


def _provider(manager: str) -> str:
    return manager.removesuffix(_SUFFIX)


def _gone_in(provider: str, heartbeats: Heartbeats) -> float:
    """Seconds until the provider counts as gone, 0 when it does."""
    return max(0.0, SILENCE - heartbeats[provider]) if provider in heartbeats else 0.0


def _abandoned(due: Mapping[str, float]) -> Abandoned:
    later = [seconds for seconds in due.values() if seconds > 0]
    return Abandoned(
        tuple(sorted(name for name, seconds in due.items() if seconds <= 0)), min(later, default=None)
    )
