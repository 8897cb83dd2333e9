"""An inference engine that is a server of ours, and the API server's way to it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from kubefoundry_sdk.api.kinds import Kind
from kubefoundry_sdk.cluster.client import Client
from support import pods

ENDPOINTS = Kind("", "v1", "endpoints", "Endpoints")


class Engine:
    """An OpenAI-style server. serves: what it lists now. asked: how often. answers: the status of a completion;
    completed: what it was asked to complete. words: what it says in a chat. lists: the status of its list."""

    def __init__(self, *serves: str, answers: int = 503) -> None:
        self.serves = serves
        self.words: asyncio.Queue[str | None] = asyncio.Queue()
        self.asked = 0
        self.answers = answers
        self.lists = 200
        self.completed: list[Any] = []

    async def complete(self, request: web.Request) -> web.Response:
        self.completed.append(await request.json())
        return web.json_response({"choices": [{"text": "2"}]}, status=self.answers)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Each of `words` as an event of its own, when it comes; None ends the answer."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        while (word := await self.words.get()) is not None:
            event = {"choices": [{"index": 0, "delta": {"content": word}}]}
            await response.write(f"data: {json.dumps(event)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    async def handle(self, request: web.Request) -> web.Response:
        self.asked += 1
        body = {"object": "list", "data": [{"id": name} for name in self.serves]}
        return web.json_response(body, status=self.lists)


def own_address() -> str:
    """One that is no loopback address: the API server passes nothing on to those."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_way_out:
        any_way_out.connect(("192.0.2.1", 9))
        return str(any_way_out.getsockname()[0])


@asynccontextmanager
async def listening(engine: Engine) -> AsyncIterator[int]:
    """The port where it answers."""
    app = web.Application()
    app.router.add_get("/v1/models", engine.handle)
    app.router.add_post("/v1/completions", engine.complete)
    app.router.add_post("/v1/chat/completions", engine.chat)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, own_address(), 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def led_to(api: Client, namespace: str, service: str, port: int, named: str = "http") -> None:
    """Has the API server pass on what is for the Service, which it does to addresses of pods only.

    named: the Service's port.
    """
    address = own_address()
    await pods.pod(
        api, namespace, "engine", {}, {**pods.ready(), "podIP": address, "podIPs": [{"ip": address}]}
    )
    target = {"kind": "Pod", "name": "engine", "namespace": namespace}
    behind = {
        "addresses": [{"ip": address, "targetRef": target}],
        "ports": [{"name": named, "port": port}],
    }
    body = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": service, "namespace": namespace},
    }
    await api.create(ENDPOINTS, {**body, "subsets": [behind]}, manager="test")
