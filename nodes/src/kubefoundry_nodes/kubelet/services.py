"""Answers at the addresses of Services: a forwarder for each, as long as it has a ready endpoint.

Without one nothing listens, so a client is refused immediately, as with kube-proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from kubefoundry_nodes.kubelet import addresses
from kubefoundry_nodes.kubelet.names import ServiceAddresses
from kubefoundry_sdk.api.kinds import Object

OWNER: Final = "kubernetes.io/service-name"
CHUNK: Final = 1 << 16

Place = tuple[str, int]
"""Address and port."""


@dataclass(slots=True)
class Forwarder:
    """Listens at the Services' addresses."""

    _targets: dict[Place, list[Place]] = field(default_factory=dict)
    _servers: dict[Place, asyncio.Server] = field(default_factory=dict)
    _local: set[str] = field(default_factory=set)
    _open: set[asyncio.Task[Any]] = field(default_factory=set)

    async def update(self, services: Iterable[Object], slices: Iterable[Object]) -> None:
        """Makes exactly these Services answer."""
        services = list(services)
        self._targets = targets(services, slices)
        for place in self._servers.keys() - self._targets.keys():
            self._servers.pop(place).close()
        wanted = {address for one in services for address in cluster_addresses(one)}
        for address in self._local - wanted:
            await addresses.remove_local(address)
        for address in wanted - self._local:
            await addresses.add_local(address)
        self._local = wanted
        for place in self._targets.keys() - self._servers.keys():
            accepted = functools.partial(self._accepted, place)
            self._servers[place] = await asyncio.start_server(accepted, *place)

    def close(self) -> None:
        for server in self._servers.values():
            server.close()
        for task in self._open:
            task.cancel()

    async def _accepted(
        self, place: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await forward(reader, writer, self._targets.get(place) or [])
        finally:
            self._open.discard(task)


async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, found: list[Place]) -> None:
    """One connection, to one of these endpoints; closed immediately if that does not answer."""
    with contextlib.suppress(OSError, asyncio.CancelledError):
        try:
            if not found:
                return
            out_reader, out_writer = await asyncio.open_connection(*random.choice(found))
            try:
                await asyncio.gather(_pump(reader, out_writer), _pump(out_reader, writer))
            finally:
                out_writer.close()
        finally:
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(CHUNK):
        writer.write(chunk)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def cluster_addresses(service: Object) -> tuple[str, ...]:
    address = service["spec"].get("clusterIP")
    return (address,) if address and address != "None" else ()


def targets(services: Iterable[Object], slices: Iterable[Object]) -> dict[Place, list[Place]]:
    """The ready endpoints behind each address and port."""
    behind = _behind(slices)
    made: dict[Place, list[Place]] = {}
    for service in services:
        meta = service["metadata"]
        for address in cluster_addresses(service):
            for port in service["spec"].get("ports") or ():
                found = [
                    (endpoint, number)
                    for one in behind.get((meta["namespace"], meta["name"]), ())
                    for number in _numbers(one, port.get("name") or "")
                    for endpoint in ready(one)
                ]
                if found and port.get("protocol", "TCP") == "TCP":
                    made[address, port["port"]] = found
    return made


def names(services: Iterable[Object], slices: Iterable[Object]) -> ServiceAddresses:
    """The addresses behind a Service's name: its own, or for a headless one those of its endpoints."""
    behind = _behind(slices)
    made: dict[tuple[str, str], tuple[str, ...]] = {}
    for service in services:
        key = service["metadata"]["namespace"], service["metadata"]["name"]
        found = cluster_addresses(service) or tuple(a for one in behind.get(key, ()) for a in ready(one))
        made[key] = found
    return made


def ready(one: Object) -> list[str]:
    """Addresses of an EndpointSlice that accept connections; an unknown state counts as ready."""
    return [
        str(address)
        for endpoint in one.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready") is not False
        for address in endpoint["addresses"]
    ]


def _numbers(one: Object, name: str) -> list[int]:
    return [port["port"] for port in one.get("ports") or () if (port.get("name") or "") == name]


def _behind(slices: Iterable[Object]) -> dict[tuple[str, str], list[Object]]:
    made: dict[tuple[str, str], list[Object]] = {}
    for one in slices:
        meta = one["metadata"]
        if (owner := (meta.get("labels") or {}).get(OWNER)) and one.get("addressType") == "IPv4":
            made.setdefault((meta["namespace"], owner), []).append(one)
    return made
