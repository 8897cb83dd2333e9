"""The port of core's webhooks, without a cluster."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from kubefoundry_core.admission.application import PATIENCE, application
from kubefoundry_core.admission.listener import Listener, server_context
from kubefoundry_core.certificates import Material, renewed
from kubefoundry_sdk._runtime.listening import bind

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def material() -> Material:
    created = renewed(None, ("127.0.0.1",), datetime.now(UTC) - timedelta(minutes=1))
    assert created
    return created


@asynccontextmanager
async def listening(
    served: Material,
    *,
    patience: float = 60.0,
    new_context: Callable[[], ssl.SSLContext] = server_context,
    registered: Callable[[], dict[str, Any]] = dict,
) -> AsyncIterator[tuple[str, ssl.SSLContext, int]]:
    """Listen with this certificate, and yield the URL, the client's TLS context and the port."""
    async with bound_listener(patience=patience, new_context=new_context, registered=registered) as (
        listener,
        port,
        _,
    ):
        await listener.present(served)
        trust = ssl.create_default_context(cadata=served.bundle.decode())
        yield f"https://127.0.0.1:{port}", trust, port


@asynccontextmanager
async def bound_listener(
    *,
    patience: float = PATIENCE,
    new_context: Callable[[], ssl.SSLContext] = server_context,
    registered: Callable[[], dict[str, Any]] = dict,
    delay: float = 0.0,
) -> AsyncIterator[tuple[Listener, int, asyncio.Task[None]]]:
    """Yield a listener without a certificate, its port, and the task that ends it once it is cancelled."""
    bound = bind(0)
    listener = Listener(
        application(registered, lambda namespace: 2**30, no_models, patience=patience),
        bound,
        new_context,
        delay,
    )
    closing = asyncio.create_task(listener.closed_at_end())
    try:
        yield listener, bound.getsockname()[1], closing
    finally:
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)


async def head_alone(port: int, trust: ssl.SSLContext, length: int | None, path: str = "/validate") -> Stream:
    """Send a request without its body. The connection stays while the writer is held."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
    stated = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    writer.write(f"POST {path} HTTP/1.1\r\nHost: core\r\n{stated}\r\n\r\n".encode())
    await writer.drain()
    return reader, writer


async def no_models() -> list[str]:
    return []
