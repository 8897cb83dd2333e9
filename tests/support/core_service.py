"""The Service of core's webhooks: one port that leads to the replicas that it knows as ready."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

PIECE = 65536


@dataclass(slots=True)
class Service:
    """Forwards new connections to the endpoints in turn, as kube-proxy does. Open connections stay.

    Attributes:
        endpoints: The ports of the ready replicas.
        refused: The connections that an endpoint did not accept.
    """

    endpoints: list[int] = field(default_factory=list)
    refused: int = 0
    _turn: itertools.count[int] = field(default_factory=itertools.count)

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client with an endpoint until one of them closes."""
        port = self.endpoints[next(self._turn) % len(self.endpoints)]
        try:
            behind = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            self.refused += 1
            writer.close()
            return
        await asyncio.gather(_copy(reader, behind[1]), _copy(behind[0], writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def service(port: int) -> AsyncIterator[Service]:
    """Listen at the port while the block runs."""
    made = Service()
    server = await asyncio.start_server(made.forward, "127.0.0.1", port)
    try:
        yield made
    finally:
        server.close()
