"""Providers that the checks of a selector register.

Their heartbeats continue during a check, as those of real providers do. Otherwise a selector on a slow machine would
see them as stale.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from kubefoundry_conformance.cluster.rig import Rig
from kubefoundry_conformance.cluster.settings import MANAGER, TIMEOUT, now
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import PROVIDER_CONFIGS, Object
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

INTERVAL: Final = TIMEOUT / 3
"""Seconds between two heartbeats."""

CAPABILITIES: Final = {
    "engines": ["vllm"],
    "servingModes": ["aggregated"],
    "gpuSupport": True,
    "cpuSupport": True,
}
SAME_CAPABILITIES: Final[Mapping[str, Mapping[str, Any]]] = {}


class Offered:
    """Registers the providers of `rig.providers`."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._ready: dict[str, bool] = {}
        """Readiness of the providers with a heartbeat, by name."""
        # A pending heartbeat must not overwrite the status that a check writes.
        self._writes = asyncio.Lock()

    async def register(
        self,
        *,
        ready: Mapping[str, bool],
        capabilities: Mapping[str, Mapping[str, Any]] = SAME_CAPABILITIES,
    ) -> None:
        """Register all providers with a current heartbeat.

        Args:
            ready: Readiness by name; a provider that is missing here is ready.
            capabilities: Capabilities by name that differ from CAPABILITIES.
        """
        async with self._writes:
            for priority, name in enumerate(self._rig.providers):
                spec = {
                    "capabilities": {**CAPABILITIES, **capabilities.get(name, {})},
                    "selectionRules": [{"condition": "true", "priority": priority}],
                }
                await self._rig.api.apply(PROVIDER_CONFIGS, {**_head(name), "spec": spec}, manager=MANAGER)
                self._ready[name] = ready.get(name, True)
                await self._heartbeat(name)

    async def deregister(self, name: str) -> None:
        """Delete the registration of a provider."""
        async with self._writes:
            self._ready.pop(name, None)
            config = await self._rig.api.get(PROVIDER_CONFIGS, name)
            await self._rig.api.delete(PROVIDER_CONFIGS, name, None, uid=config["metadata"]["uid"])

    async def fall_silent(self, name: str) -> None:
        """Stop the heartbeat of a provider, which stays registered and ready."""
        async with self._writes:
            self._ready.pop(name, None)

    async def keep_alive(self) -> None:
        """Send heartbeats until cancelled, and ignore failed ones."""
        while True:
            await asyncio.sleep(INTERVAL)
            async with self._writes:
                for name in self._ready:
                    with suppress(ApiError, Unreachable):
                        await self._heartbeat(name)

    async def _heartbeat(self, name: str) -> None:
        status = {"ready": self._ready[name], "lastHeartbeat": now()}
        await self._rig.api.apply_status(PROVIDER_CONFIGS, {**_head(name), "status": status}, manager=MANAGER)


def _head(name: str) -> Object:
    return {"apiVersion": names.API_VERSION, "kind": names.PROVIDER_CONFIG, "metadata": {"name": name}}


Outcome = TypeVar("Outcome")


def offering(
    check: Callable[[Rig, Offered], Coroutine[Any, Any, Outcome]],
) -> Callable[[Rig], Coroutine[Any, Any, Outcome]]:
    """Pass providers to the coroutine of a check, and send their heartbeats until it ends."""

    async def check_with_providers(rig: Rig) -> Outcome:
        offered = Offered(rig)
        heartbeats = asyncio.create_task(offered.keep_alive())
        try:
            return await check(rig, offered)
        finally:
            heartbeats.cancel()
            await asyncio.wait([heartbeats])

    return check_with_providers
