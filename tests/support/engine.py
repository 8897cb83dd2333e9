"""A simulated inference engine, and a Service that leads the API server to it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._cluster.client import Client
from support import pods

ENDPOINTS = Kind("", "v1", "endpoints", "Endpoints")


class Engine:
    """An OpenAI-style server.

    Attributes:
        serves: The model names that it lists.
        words: The pieces of a chat's answer.
        asked: The number of requests for the list.
        answers: The HTTP status of a completion.
        lists: The HTTP status of the list.
        completed: The bodies of all requests for a completion.
    """

    def __init__(self, *serves: str, answers: int = 503) -> None:
        self.serves = serves
        self.words: asyncio.Queue[str | None] = asyncio.Queue()
        self.asked = 0
        self.answers = answers
        self.lists = 200
        self.completed: list[Any] = []

    async def complete(self, request: web.Request) -> web.Response:
        """Answer a request for a completion."""
        self.completed.append(await request.json())
        return web.json_response({"choices": [{"text": "2"}]}, status=self.answers)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Stream each of `words` as an event as soon as it is put. None ends the answer."""
        # The API server's proxy drops the rest of a request once it forwards a response, and then breaks off both.
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        while (word := await self.words.get()) is not None:
            event = {"choices": [{"index": 0, "delta": {"content": word}}]}
            await response.write(f"data: {json.dumps(event)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    async def handle(self, request: web.Request) -> web.Response:
        """Answer a request for the list of models."""
        self.asked += 1
        body = {"object": "list", "data": [{"id": name} for name in self.serves]}
        return web.json_response(body, status=self.lists)


def own_address() -> str:
    """Return an address of this machine outside loopback, where the API server's proxy does not connect."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


@asynccontextmanager
async def listening(engine: Engine) -> AsyncIterator[int]:
    """Serve the engine during the block, and yield its port."""
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
    """Lead the Service to a port of this machine. Its address has to be a pod's, or the API server refuses it.

    Args:
        api: A client with the rights of an administrator.
        namespace: Namespace of the Service.
        service: Name of the Service.
        port: The engine's port.
        named: Name of the Service's port.
    """
    address = own_address()
    await pods.pod(
        api, namespace, "engine", {}, {**pods.ready(), "podIP": address, "podIPs": [{"ip": address}]}
    )
    target = {"kind": "Pod", "name": "engine", "namespace": namespace}
    subset = {
        "addresses": [{"ip": address, "targetRef": target}],
        "ports": [{"name": named, "port": port}],
    }
    body = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": service, "namespace": namespace},
    }
    await api.create(ENDPOINTS, {**body, "subsets": [subset]}, manager="test")
