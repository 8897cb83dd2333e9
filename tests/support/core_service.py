"""The Service of core's webhooks: one port that leads to the replicas that it knows as ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kubefoundry_nodes.kubelet.services import forward


@dataclass(slots=True)
class Service:
    """Forwards new connections to the endpoints, as kube-proxy does. Open connections stay.

    Attributes:
        endpoints: The ports of the ready replicas.
        refused: The connections that no endpoint accepted.
    """

    endpoints: list[int] = field(default_factory=list)
    refused: int = 0

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client with an endpoint until both have closed."""
        places = [("127.0.0.1", port) for port in self.endpoints]
        if not await forward(reader, writer, places):
            self.refused += 1


@asynccontextmanager
async def service(port: int) -> AsyncIterator[Service]:
    """Listen at the port while the block runs."""
    made = Service()
    server = await asyncio.start_server(made.forward, "127.0.0.1", port)
    try:
        yield made
    finally:
        server.close()
