"""Requests to a tenant's server through the API server: `services/proxy`.

Status, headers and body of a response are the tenant's. A server can copy a refusal of the API server to the byte, so
only the API server's own review shows whether the API server refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from http.client import responses
from typing import Any, Final
from urllib.parse import quote

from kubefoundry_sdk._api.foreign_json import Unreadable, decode
from kubefoundry_sdk._api.kinds import SERVICES
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, TooLong
from kubefoundry_sdk._cluster.permission import may
from kubefoundry_sdk._cluster.requests import path, sent
from kubefoundry_sdk._cluster.responses import lines_of

LIMIT: Final = 2**20
"""Bytes of a response that are read, and of a line before it comes in pieces."""

SILENCE: Final = 600.0
"""Seconds without a byte after which a stream counts as dead: a model may compile on its first request."""

REFUSALS: Final = (401, 403)
"""Status codes with which the API server refuses a request itself."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A response: the tenant's, unless `ServiceProxy.refuses`."""

    status: int
    body: bytearray


class Refused(Exception):
    """The response to a stream's request has another status than 2xx."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(status_text(reply.status))
        self.reply = reply


@dataclass(frozen=True, slots=True)
class ServiceProxy:
    """A Service behind the API server, which checks the client's identity. `address` is `service:port`."""

    client: Client
    namespace: str
    address: str

    @property
    def root(self) -> str:
        """The path on the API server. Paths of the tenant's server follow."""
        # An address may come from a status, and must not lead to another resource.
        return f"{path(SERVICES, self.namespace)}/{quote(self.address, safe=':')}/proxy"

    async def exchange(self, url: str, body: Mapping[str, Any] | None = None, *, seconds: float) -> Reply:
        """Return the response to a GET, or to a POST with that body. Raise Unreachable."""
        method, request, data = self._parts(url, body)
        async with self.client.proxied(
            method, self.root + url, data, request=request, seconds=seconds, silence=seconds
        ) as (status, chunks):
            return Reply(status, await _read(chunks, request))

    async def lines(
        self, url: str, body: Mapping[str, Any] | None = None, *, seconds: float | None = None
    ) -> AsyncIterator[bytes]:
        """Yield the lines of a response as they arrive. Raise Refused or Unreachable.

        Lines keep their end. A line longer than LIMIT comes in pieces.

        Args:
            url: The path on the tenant's server.
            body: The body of a POST; None for a GET.
            seconds: Seconds for the whole response, None for no limit.
        """
        method, request, data = self._parts(url, body)
        async with self.client.proxied(
            method, self.root + url, data, request=request, seconds=seconds, silence=SILENCE
        ) as (status, chunks):
            if not 200 <= status < 300:
                raise Refused(Reply(status, await _read(chunks, request)))
            async for line in lines_of(chunks, LIMIT):
                yield bytes(line)

    async def refuses(self, reply: Reply, *, posts: bool) -> ApiError | None:
        """Return the API server's refusal if the reply is one, None if it is the tenant's.

        Raise ApiError or Unreachable if the API server does not answer that question.
        """
        verb = "create" if posts else "get"
        if reply.status not in REFUSALS or await may(
            self.client, verb, SERVICES, self.address, namespace=self.namespace, subresource="proxy"
        ):
            return None
        # The API server lets no request of ours through, so no tenant wrote this.
        return ApiError.from_status(reply.status, _decoded(reply.body))

    def _parts(self, url: str, body: Mapping[str, Any] | None) -> tuple[str, str, bytes | None]:
        method = "GET" if body is None else "POST"
        request = f"{method} {self.root}{url}"
        return method, request, None if body is None else sent(body, request)


def status_text(status: int) -> str:
    """Return a status with its usual name: `401 Unauthorized`."""
    return f"{status} {responses.get(status, '')}".rstrip()


def _decoded(body: bytearray) -> Any:
    try:
        return decode(body)
    except Unreadable:
        return body.decode(errors="replace")


async def _read(chunks: AsyncIterator[bytes], request: str) -> bytearray:
    raw = bytearray()
    async for chunk in chunks:
        raw += chunk
        if len(raw) > LIMIT:
            raise TooLong(f"{request}: the response is longer than {LIMIT} bytes")
    return raw
