"""A server in the API server's place that answers as a test tells it to, and keeps what it was asked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.credentials import Credentials


@dataclass(frozen=True, slots=True)
class Asked:
    """A request; body: its decoded JSON, None where there was none."""

    method: str
    path: str
    query: dict[str, str]
    token: str
    body: Any


Answer = Callable[[Asked], web.Response]


@dataclass(frozen=True, slots=True)
class Wire:
    """client: speaks to the server, with a token that names the number of the request."""

    client: Client
    asked: list[Asked]


@asynccontextmanager
async def wire(answer: Answer) -> AsyncIterator[Wire]:
    """A server for as long as the block lasts."""
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
        return answer(asked[-1])

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    async with TestServer(app) as server:
        who = Credentials(str(server.make_url("")).rstrip("/"), None, lambda: f"token-{len(asked)}")
        async with Client(who, user_agent="test") as client:
            yield Wire(client, asked)


def ok(body: Any = None) -> web.Response:
    return web.json_response(body if body is not None else {})


def refusal(code: int, reason: str, message: str = "no", *, retry_after: int | None = None) -> web.Response:
    """A Status, with the header `Retry-After` where seconds are given."""
    status = {"kind": "Status", "code": code, "reason": reason, "message": message}
    headers = {"Retry-After": str(retry_after)} if retry_after is not None else None
    return web.json_response(status, status=code, headers=headers)


def events(*reported: tuple[str, Any]) -> web.Response:
    """A watch that ends after these."""
    lines = [json.dumps({"type": kind, "object": obj}) for kind, obj in reported]
    return web.Response(text="".join(f"{line}\n" for line in lines), content_type="application/json")
