"""The providers that a check of a selector registers. Like those of real providers, their heartbeats go on: a subject
on a slow machine is not judged by providers that are silent meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from kubefoundry_conformance.cluster.rig import MANAGER, TIMEOUT, Rig, now
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import PROVIDER_CONFIGS, Object
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable

INTERVAL: Final = TIMEOUT / 3
"""Seconds between two heartbeats."""

CAPABILITIES: Final = {
    "engines": ["vllm"],
    "servingModes": ["aggregated"],
    "gpuSupport": True,
    "cpuSupport": True,
}
ALL_ALIKE: Final[Mapping[str, Mapping[str, Any]]] = {}


class Offered:
    """The providers of a rig, `rig.providers`, as its checks register them."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._ready: dict[str, bool] = {}
        """Of those with a heartbeat, whether they are ready."""
        # A heartbeat on its way must not take back what a check says meanwhile.
        self._writes = asyncio.Lock()

    async def register(
        self, *, ready: Mapping[str, bool], able: Mapping[str, Mapping[str, Any]] = ALL_ALIKE
    ) -> None:
        """All of them, each with a heartbeat of now. ready: False for those that are not. able: capabilities of some,
        by name."""
        async with self._writes:
            for priority, name in enumerate(self._rig.providers):
                spec = {
                    "capabilities": {**CAPABILITIES, **able.get(name, {})},
                    "selectionRules": [{"condition": "true", "priority": priority}],
                }
                await self._rig.api.apply(PROVIDER_CONFIGS, {**_head(name), "spec": spec}, manager=MANAGER)
                self._ready[name] = ready.get(name, True)
                await self._heartbeat(name)

    async def deregister(self, name: str) -> None:
        async with self._writes:
            self._ready.pop(name, None)
            there = await self._rig.api.get(PROVIDER_CONFIGS, name)
            await self._rig.api.delete(PROVIDER_CONFIGS, name, None, uid=there["metadata"]["uid"])

    async def fall_silent(self, name: str) -> None:
        """It stays registered, and ready, without another heartbeat."""
        async with self._writes:
            self._ready.pop(name, None)

    async def keep_alive(self) -> None:
        """Runs until cancelled. A heartbeat that fails is followed by the next."""
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


Found = TypeVar("Found")


def offering(
    look: Callable[[Rig, Offered], Coroutine[Any, Any, Found]],
) -> Callable[[Rig], Coroutine[Any, Any, Found]]:
    """The coroutine of a check, with providers to register, whose heartbeats end with it."""

    async def looked(rig: Rig) -> Found:
        offered = Offered(rig)
        heartbeats = asyncio.create_task(offered.keep_alive())
        try:
            return await look(rig, offered)
        finally:
            heartbeats.cancel()
            await asyncio.wait([heartbeats])

    return looked
