"""A fake API server with the responses of a test. It records the requests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. `body` is its decoded JSON, or None."""

    method: str
    path: str
    query: dict[str, str]
    token: str
    body: Any


Answer = Callable[[Asked], web.Response | Awaitable[web.Response]]


@dataclass(frozen=True, slots=True)
class Wire:
    """A running server. The token of `client` has the number of the request; `asked` has all requests."""

    client: Client
    asked: list[Asked]


@asynccontextmanager
async def wire(answer: Answer) -> AsyncIterator[Wire]:
    """Run the server during the block."""
    asked: list[Asked] = []

    async def handle(request: web.Request) -> web.Response:
        raw = await request.read()
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        asked.append(
            Asked(
                request.method,
                request.path,
                dict(request.query),
                token,
                json.loads(raw) if raw else None,
            )
        )
        response = answer(asked[-1])
        return response if isinstance(response, web.Response) else await response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    async with TestServer(app) as server:
        account = Credentials(str(server.make_url("")).rstrip("/"), None, lambda: f"token-{len(asked)}")
        async with Client(account, user_agent="test") as client:
            yield Wire(client, asked)


def ok(body: Any = None) -> web.Response:
    """Return a response with status 200."""
    return web.json_response(body if body is not None else {})


def refusal(
    code: int, reason: str, message: str = "no", *, details: Any = None, retry_after: int | None = None
) -> web.Response:
    """Return a Status, with the header `Retry-After` if seconds are given."""
    status = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details or {}}
    headers = {"Retry-After": str(retry_after)} if retry_after is not None else None
    return web.json_response(status, status=code, headers=headers)


def events(*reported: tuple[str, Any]) -> web.Response:
    """Return a watch that ends after these events."""
    lines = [json.dumps({"type": kind, "object": obj}) for kind, obj in reported]
    return web.Response(text="".join(f"{line}\n" for line in lines), content_type="application/json")
