"""Finalizers and status fields that a provider leaves behind when it is gone (contract §3, §4.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kubefoundry_sdk._api import handover, names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment

_SUFFIX: Final = names.provider_manager("")

LostIn = Mapping[str, float]
"""Seconds until each registered provider counts as gone, 0 if it already does (`Providers.lost_in`)."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Finalizers or field managers of providers that are gone.

    Attributes:
        names: Names that may be removed now.
        retry: Seconds until more names may be removed; None if there are no more.
    """

    names: tuple[str, ...]
    retry: float | None


def orphaned_finalizers(deployment: Object, lost_in: LostIn, left: float) -> Abandoned:
    """Return finalizers of providers that are gone, on an object whose deletion has waited long enough for them.

    Args:
        deployment: The ModelDeployment.
        lost_in: Seconds until each provider counts as gone, by name (`Providers.lost_in`).
        left: Seconds that a provider still has to clean up (contract §4.3), from when core first saw the deletion.
    """
    if not LiveModelDeployment(deployment).is_deleting:
        return Abandoned((), None)
    invented = invented_finalizers(deployment, lost_in)
    due: dict[str, float] = {}
    for provider in handover.finalizing(deployment):
        finalizer = names.provider_finalizer(provider)
        due[finalizer] = 0.0 if finalizer in invented else max(left, lost_in.get(provider, 0.0))
    return _abandoned(due)


def invented_finalizers(deployment: Object, lost_in: LostIn) -> set[str]:
    """Return finalizers of unregistered providers that another manager added, so that no provider removes them."""
    return {
        names.provider_finalizer(provider)
        for provider in handover.finalizing(deployment)
        if provider not in lost_in and handover.planted(deployment, provider)
    }


def dead_managers(deployment: Object, lost_in: LostIn) -> Abandoned:
    """Return field managers of providers that are gone and still own status, although another provider is chosen.

    A silent provider that is still chosen keeps its fields, because its model may keep serving. A provider whose
    successor has not reported that it takes over keeps its fields, too.
    """
    live = LiveModelDeployment(deployment)
    current = live.provider_name
    if not current or not handover.accepted(deployment):
        return Abandoned((), None)
    return _abandoned(
        {
            manager: lost_in.get(_provider(manager), 0.0)
            for manager in live.reporters()
            if manager.endswith(_SUFFIX) and manager != names.provider_manager(current)
        }
    )


def remaining(deployment: Object) -> str:
    """Return the upstream object that is left behind, as the status names it, or "none known"."""
    provider = LiveModelDeployment(deployment).provider
    if not provider.get("resourceName"):
        return "none known"
    namespace = deployment["metadata"]["namespace"]
    return f"{provider.get('resourceKind', 'object')} {namespace}/{provider['resourceName']}"


def _provider(manager: str) -> str:
    return manager.removesuffix(_SUFFIX)


def _abandoned(due: Mapping[str, float]) -> Abandoned:
    later = [seconds for seconds in due.values() if seconds > 0]
    return Abandoned(
        tuple(sorted(name for name, seconds in due.items() if seconds <= 0)), min(later, default=None)
    )
