"""ModelDeployments that name no provider, and the provider that a selector chooses for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from kubefoundry_conformance.cluster.deployments import Place
from kubefoundry_conformance.cluster.offered import Offered
from kubefoundry_conformance.cluster.rig import Rig
from kubefoundry_conformance.cluster.settings import MANAGER
from kubefoundry_conformance.cluster.waiting import NotSeen, condition
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.reasons import PROVIDER_SELECTED

SPEC: Final = {
    "model": {"id": "org/model"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}
"""Spec that every offered provider supports."""

STALE: Final = 10.0
"""Longest delay in seconds until a selector sees a change of a provider: some list the providers periodically."""

ROW: Final = 3
"""Number of consecutive fitting selections after which the selector has seen a change."""


def selected(obj: Object) -> str:
    """Return the provider that the selector chose, empty if it has not chosen one."""
    if condition(obj, PROVIDER_SELECTED).get("reason") != "AutoSelected":
        return ""
    return str(((obj.get("status") or {}).get("provider") or {}).get("name", ""))


async def create_deployment(rig: Rig, place: Place, **metadata: Any) -> Object:
    """Create a ModelDeployment that names no provider."""
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.MODEL_DEPLOYMENT,
        "metadata": {"name": place.name, "namespace": place.namespace, **metadata},
        "spec": SPEC,
    }
    return await rig.api.create(MODEL_DEPLOYMENTS, body, manager=MANAGER)


async def create_selected(rig: Rig, offered: Offered) -> tuple[Place, str]:
    """Register all providers, create a ModelDeployment, and return its place and the selected provider."""
    await offered.register(ready={})
    place = rig.place()
    await create_deployment(rig, place)
    name = selected(await rig.deployment(place, selected))
    if name not in rig.providers:
        raise NotSeen(f"{name!r} was selected, which is not registered")
    return place, name


async def settle(rig: Rig, fits: Callable[[str], bool]) -> str:
    """Create ModelDeployments until ROW consecutive ones get a fitting provider, and return the last provider.

    The selector may see a ModelDeployment before it sees a change of a provider, and a selector that spreads models
    may fit by chance. After STALE seconds the function returns a provider that does not fit.
    """
    clock = asyncio.get_running_loop().time
    deadline, row, pause = clock() + STALE, 0, 0.1
    while True:
        place = rig.place()
        await create_deployment(rig, place)
        provider = selected(await rig.deployment(place, selected))
        row = row + 1 if fits(provider) else 0
        if row == ROW or (row == 0 and clock() > deadline):
            return provider
        if row == 0:
            await asyncio.sleep(pause)
            pause = min(2 * pause, 1.0)
