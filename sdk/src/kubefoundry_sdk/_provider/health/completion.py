"""Requests one token, to check that a model answers and is not merely listed.

Dynamo lists a model seconds before its first worker is reachable, and a frontend without workers stays Ready
(ai-dynamo/dynamo issues 11855 and 11178). No API reports which kinds of request a model accepts, so they are tried in
turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.service_proxy import ServiceProxy
from kubefoundry_sdk._provider.contract import Endpoint
from kubefoundry_sdk._provider.health.models_endpoint import (
    KEY_REQUIRED,
    KeyRequired,
    NoModels,
    exchange,
    parsed,
    proxied,
    root,
)

TIMEOUT: Final = 60.0
"""Seconds to wait for an answer: an engine may compile on its first request."""

REQUESTS: Final[tuple[tuple[str, Mapping[str, Any]], ...]] = (
    ("/v1/completions", {"prompt": "1", "max_tokens": 1}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "1"}], "max_tokens": 1}),
    ("/v1/embeddings", {"input": "1"}),
)
"""The OpenAI API's requests for text, chat and embedding models."""

OTHER_KIND: Final = frozenset({400, 404, 405, 415, 422, 501})
"""Status codes of a server that has the model but does not support this kind of request for it."""

Try = Callable[[str, Endpoint, str], Awaitable[None]]
"""Requests one token from the model at the endpoint in a namespace. Raises NoModels if the model does not answer."""

Send = Callable[[str, Mapping[str, Any] | None], Awaitable[int]]
"""Sends a POST with the body to the path, or a GET if the body is None. Returns the response's status code. Raises
NoModels if there is no response."""


def through_server(client: Client) -> Try:
    """Return a function that requests a token through the API server, for a process outside the cluster.

    Needs `get` and `create` on `services/proxy`.
    """

    async def attempt(namespace: str, endpoint: Endpoint, model: str) -> None:
        service = ServiceProxy(client, namespace, f"{endpoint.service}:{endpoint.port}")

        async def send(path: str, body: Mapping[str, Any] | None) -> int:
            reply = await proxied(service, path, body, seconds=TIMEOUT)
            if reply.status == 200 and body is not None:
                parsed(reply.body, f"POST {service.root}{path}")
            return reply.status

        await one_token(send, model)

    return attempt


def directly(client: Client) -> Try:
    """Return a function that requests a token at the Service's own address, as `models_endpoint.directly`.

    Needs `get` on `services`.
    """

    async def attempt(namespace: str, endpoint: Endpoint, model: str) -> None:
        await request_token(await root(client, namespace, endpoint), model)

    return attempt


async def request_token(url: str, model: str) -> None:
    """Request a token from the server at `url`. Raise NoModels."""

    async def send(path: str, body: Mapping[str, Any] | None) -> int:
        method = "GET" if body is None else "POST"
        status, answer = await exchange(method, f"{url}{path}", body, seconds=TIMEOUT)
        if status == 200 and body is not None:
            parsed(answer, f"{method} {url}{path}")
        return status

    await one_token(send, model)


async def one_token(send: Send, model: str) -> None:
    """Request one token, with each kind of request until the server answers one.

    The readiness path of Dynamo comes first, if the server has it. Raise NoModels if the server answers no kind of
    request, KeyRequired if it requires a key.
    """
    ready = f"/v1/models/{quote(model, safe='')}/ready"
    if (status := await send(ready, None)) in KEY_REQUIRED:
        raise KeyRequired(f"GET {ready} answers {status}")
    if status not in (200, *OTHER_KIND):
        raise NoModels(f"GET {ready} answers {status}")
    refusals = []
    for path, body in REQUESTS:
        status = await send(path, {"model": model, **body})
        if status == 200:
            return
        if status in KEY_REQUIRED:
            raise KeyRequired(f"a request for one token to {path} is answered by {status}")
        refusals.append(f"{path} {status}")
        if status not in OTHER_KIND:
            break
    raise NoModels(f"a request for one token to {model} is answered by {', '.join(refusals)}")
