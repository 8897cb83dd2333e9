"""Forward connections from the addresses of Services to their ready endpoints.

Without a ready endpoint nothing listens, so a client is refused immediately, as with kube-proxy.
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
from kubefoundry_sdk._api.kinds import Object

OWNER: Final = "kubernetes.io/service-name"
API_SERVER: Final = ("default", "kubernetes")
CHUNK: Final = 1 << 16

Place = tuple[str, int]
"""Address and port."""


@dataclass(slots=True)
class Forwarder:
    """Listens at the Services' addresses.

    Attributes:
        api_server: The endpoint of the Service `kubernetes`, whose own endpoints cannot be on loopback.
    """

    api_server: Place
    _targets: dict[Place, list[Place]] = field(default_factory=dict)
    _servers: dict[Place, asyncio.Server] = field(default_factory=dict)
    _local: set[str] = field(default_factory=set)
    _open: set[asyncio.Task[Any]] = field(default_factory=set)

    async def update(self, services: Iterable[Object], slices: Iterable[Object]) -> None:
        """Listen for exactly these Services."""
        services = list(services)
        self._targets = targets(services, slices) | self._api_server_targets(services)
        for place in self._servers.keys() - self._targets.keys():
            self._servers.pop(place).close()
        await self._keep_local({address for service in services for address in cluster_addresses(service)})
        for place in self._targets.keys() - self._servers.keys():
            accepted = functools.partial(self._accepted, place)
            self._servers[place] = await asyncio.start_server(accepted, *place)

    def _api_server_targets(self, services: Iterable[Object]) -> dict[Place, list[Place]]:
        return {
            (address, port["port"]): [self.api_server]
            for service in services
            if (service["metadata"]["namespace"], service["metadata"]["name"]) == API_SERVER
            for address in cluster_addresses(service)
            for port in service["spec"]["ports"]
        }

    async def _keep_local(self, current: set[str]) -> None:
        """Make exactly these addresses local."""
        for address in self._local - current:
            await addresses.remove_local(address)
        for address in current - self._local:
            await addresses.add_local(address)
        self._local = current

    def close(self) -> None:
        """Close all listeners and connections."""
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


async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, endpoints: list[Place]) -> bool:
    """Forward a connection to a random endpoint, and return whether that has accepted it.

    Close the connection if the endpoint does not answer.
    """
    is_accepted = False
    with contextlib.suppress(OSError, asyncio.CancelledError):
        try:
            if not endpoints:
                return False
            out_reader, out_writer = await asyncio.open_connection(*random.choice(endpoints))
            is_accepted = True
            try:
                await asyncio.gather(_pump(reader, out_writer), _pump(out_reader, writer))
            finally:
                out_writer.close()
        finally:
            writer.close()
    return is_accepted


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(CHUNK):
        writer.write(chunk)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def cluster_addresses(service: Object) -> tuple[str, ...]:
    """Return the cluster IP of a Service, or nothing for a headless one."""
    address = service["spec"].get("clusterIP")
    return (address,) if address and address != "None" else ()


def targets(services: Iterable[Object], slices: Iterable[Object]) -> dict[Place, list[Place]]:
    """Return the ready endpoints of each address and port."""
    slices_by_service = _by_service(slices)
    result: dict[Place, list[Place]] = {}
    for service in services:
        meta = service["metadata"]
        of_service = slices_by_service.get((meta["namespace"], meta["name"]), [])
        for address in cluster_addresses(service):
            for port in service["spec"].get("ports") or ():
                endpoints = _endpoints(of_service, port.get("name") or "")
                if endpoints and port.get("protocol", "TCP") == "TCP":
                    result[address, port["port"]] = endpoints
    return result


def _endpoints(slices: Iterable[Object], port_name: str) -> list[Place]:
    """Return the ready endpoints of a port."""
    return [
        (endpoint, number)
        for endpoint_slice in slices
        for number in _numbers(endpoint_slice, port_name)
        for endpoint in ready(endpoint_slice)
    ]


def names(services: Iterable[Object], slices: Iterable[Object]) -> ServiceAddresses:
    """Return the addresses of each Service's name: its cluster IP, or the endpoints of a headless one."""
    slices_by_service = _by_service(slices)
    result: dict[tuple[str, str], tuple[str, ...]] = {}
    for service in services:
        key = service["metadata"]["namespace"], service["metadata"]["name"]
        result[key] = cluster_addresses(service) or tuple(
            address for endpoint_slice in slices_by_service.get(key, ()) for address in ready(endpoint_slice)
        )
    return result


def ready(endpoint_slice: Object) -> list[str]:
    """Return the ready addresses of an EndpointSlice; an unknown state counts as ready."""
    return [
        str(address)
        for endpoint in endpoint_slice.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready") is not False
        for address in endpoint["addresses"]
    ]


def _numbers(endpoint_slice: Object, name: str) -> list[int]:
    return [port["port"] for port in endpoint_slice.get("ports") or () if (port.get("name") or "") == name]


def _by_service(slices: Iterable[Object]) -> dict[tuple[str, str], list[Object]]:
    result: dict[tuple[str, str], list[Object]] = {}
    for endpoint_slice in slices:
        meta = endpoint_slice["metadata"]
        if (owner := (meta.get("labels") or {}).get(OWNER)) and endpoint_slice.get("addressType") == "IPv4":
            result.setdefault((meta["namespace"], owner), []).append(endpoint_slice)
    return result
