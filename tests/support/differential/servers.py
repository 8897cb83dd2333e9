"""The two servers of the test, behind one interface."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlencode, urlsplit

from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_sdk.testing._server.requests import Request
from kubefoundry_sdk.testing._server.server import Server

AGENT: Final = "differential"


class Reply(NamedTuple):
    """A status code and a body."""

    code: int
    body: dict[str, Any]


class Answering(Protocol):
    """A server."""

    def send(self, method: str, path: str, query: Mapping[str, str], body: Any, content_type: str) -> Reply:
        """Send a request."""


class Real:
    """A real API server, over one connection."""

    def __init__(self, plane: ControlPlane) -> None:
        address = urlsplit(plane.server)
        assert address.hostname
        self._connection = http.client.HTTPSConnection(
            address.hostname, address.port, context=plane.administrator(), timeout=60
        )

    def send(self, method: str, path: str, query: Mapping[str, str], body: Any, content_type: str) -> Reply:
        """Send a request."""
        url = f"{path}?{urlencode(query)}" if query else path
        headers = {"Content-Type": content_type, "Accept": "application/json", "User-Agent": AGENT}
        raw = None if body is None else json.dumps(body).encode()
        self._connection.request(method, url, raw, headers)
        response = self._connection.getresponse()
        return Reply(response.status, json.loads(response.read()))


class InMemory:
    """The server in memory."""

    def __init__(self) -> None:
        self.server = Server(lambda: datetime.now(UTC))

    def send(self, method: str, path: str, query: Mapping[str, str], body: Any, content_type: str) -> Reply:
        """Send a request."""
        raw = None if body is None else json.dumps(body).encode()
        answer = self.server.answer(Request(method, path, query, raw, content_type, "", AGENT))
        return Reply(answer.code, json.loads(json.dumps(answer.body)))
