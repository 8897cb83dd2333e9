"""A provider inside an operator that is written with kopf (the extra `kopf`).

    import kopf
    import kubefoundry_sdk.kopf

    kubefoundry_sdk.kopf.serve(provider)

It runs in kopf's event loop, with its own client and watches. It uses none of kopf's handlers, finalizers,
annotations and posted Events, because they break the contract (docs/kopf.md).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import kopf

from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.embedding import Settings, connect
from kubefoundry_sdk._provider.embedding import serve as serve_until
from kubefoundry_sdk._runtime.supervision import supervise

log = logging.getLogger(__name__)


def serve(
    provider: Provider | Callable[[], Provider],
    *,
    registry: kopf.OperatorRegistry | None = None,
    settings: Settings | None = None,
) -> None:
    """Add handlers to a registry (kopf's default one): the provider starts and stops with the operator.

    Args:
        provider: The provider, or a function that creates it when the operator starts. A failure is logged and
            retried with back-off; it does not stop the operator.
        registry: The registry; None means kopf's default one.
        settings: The provider's settings; None means those of the environment.
    """
    stop: asyncio.Event | None = None
    task: asyncio.Task[None] | None = None

    async def start(**_: Any) -> None:
        nonlocal stop, task
        built = provider() if callable(provider) else provider
        stop = asyncio.Event()
        ends = stop

        async def once() -> None:
            async with connect(built, settings) as client:
                await serve_until(built, client, ends, settings)

        task = asyncio.create_task(supervise(f"provider {built.name}", once))

    async def end(**_: Any) -> None:
        if stop is None or task is None:
            return
        stop.set()
        await asyncio.wait([task], timeout=ENDS)
        task.cancel()

    kopf.on.startup(registry=registry, id="kubefoundry-provider")(start)
    kopf.on.cleanup(registry=registry, id="kubefoundry-provider")(end)


def login(**context: Any) -> kopf.ConnectionInfo | None:
    """Log kopf in as the provider does, with a pod's ServiceAccount or else the kubeconfig, for `kopf.on.login()`.

    Only needed if the ServiceAccount's files are elsewhere (KUBEFOUNDRY_SERVICE_ACCOUNT_DIR, contract §6), as they
    are while the conformance kit runs it.
    """
    if not credentials.inside(None):
        return kopf.login_with_kubeconfig(**context)
    folder = credentials.service_account_dir()
    token = (folder / "token").read_text(encoding="utf-8").strip()
    return kopf.ConnectionInfo(
        server=credentials.server_of_pods(), ca_path=folder / "ca.crt", scheme="Bearer", token=token
    )


ENDS = 5.0
"""Seconds that the provider has to shut down (contract §6)."""
