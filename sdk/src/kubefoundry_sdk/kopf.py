"""A provider inside an operator that is written in kopf (the extra `kopf`).

    import kopf
    import kubefoundry_sdk.kopf

    kubefoundry_sdk.kopf.serve(provider)

It runs in kopf's event loop, with a client and watches of its own. kopf's handlers, finalizers, annotations and
posted Events have no part in it, because they break the contract (docs/kopf.md).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import kopf

from kubefoundry_sdk.provider.contract import Provider
from kubefoundry_sdk.provider.embedding import Settings, connect
from kubefoundry_sdk.provider.embedding import serve as serve_until
from kubefoundry_sdk.runtime.supervision import kept_up

log = logging.getLogger(__name__)


def serve(
    provider: Provider | Callable[[], Provider],
    *,
    registry: kopf.OperatorRegistry | None = None,
    settings: Settings | None = None,
) -> None:
    """Adds handlers to a registry (kopf's default one): the provider starts with the operator and ends with it.

    provider: or what makes it, called when the operator starts. A failure is logged and tried again with back-off:
    it does not end the operator.
    """
    stop: asyncio.Event | None = None
    task: asyncio.Task[None] | None = None

    async def start(**_: Any) -> None:
        nonlocal stop, task
        made = provider() if callable(provider) else provider
        stop = asyncio.Event()
        ends = stop

        async def once() -> None:
            async with connect(made, settings) as client:
                await serve_until(made, client, ends, settings)

        task = asyncio.create_task(kept_up(f"provider {made.name}", once))

    async def end(**_: Any) -> None:
        if stop is None or task is None:
            return
        stop.set()
        await asyncio.wait([task], timeout=ENDS)
        task.cancel()

    kopf.on.startup(registry=registry, id="kubefoundry-provider")(start)
    kopf.on.cleanup(registry=registry, id="kubefoundry-provider")(end)


ENDS = 5.0
"""Seconds that the provider gets to end in (contract §6)."""
