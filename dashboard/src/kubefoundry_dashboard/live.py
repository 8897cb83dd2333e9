"""Server-sent events for open pages. Each open page has a watch of its own.

The list gets `row` and `gone`, the page of one model gets `changed`. Both get `trouble` while the API server does not
answer, and `stale` when the browser has to reload the page. An event's id is the resource version to resume from.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from aiohttp import web

from kubefoundry_cli.failure import of
from kubefoundry_dashboard.models import Filter, cells
from kubefoundry_dashboard.page import opened
from kubefoundry_dashboard.rendering import environment
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.reflector import ON_TIME
from kubefoundry_sdk._cluster.retry import requested, wait

routes = web.RouteTableDef()

BEAT: Final = 10.0
"""Seconds without an event after which a line is sent, so that both ends notice a dead connection."""

LASTS: Final = 300
"""Seconds that a watch lasts, as requested from the API server."""

AGAIN: Final = 1.0
"""Seconds between two requests to an API server that does not answer."""

LONGEST_WAIT: Final = 60.0
"""The longest `Retry-After` in seconds that is obeyed: the page shows no change meanwhile."""

REFUSED: Final = 30.0
"""Seconds until the next attempt if watching is forbidden."""

NAME: Final = "[a-z0-9][-a-z0-9.]{0,252}"
"""Pattern of a path segment with a namespace's or a model's name. The API server stores no other names."""

Message = tuple[str, str, str]
"""Event, data and id."""


async def stream(request: web.Request, messages: AsyncIterator[Message]) -> web.StreamResponse:
    """Send the messages until they end or the browser closes the connection."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
    await response.prepare(request)
    # A task fills the queue, because wait_for would cancel a generator in the middle of its watch.
    queue: asyncio.Queue[Message | None] = asyncio.Queue(100)

    async def read() -> None:
        try:
            async for message in messages:
                await queue.put(message)
        finally:
            await queue.put(None)

    reader = asyncio.create_task(read())
    try:
        await response.write(b": open\n\n")
        while True:
            try:
                message = await asyncio.wait_for(queue.get(), BEAT)
            except TimeoutError:
                await response.write(b"event: beat\ndata:-\n\n")
                continue
            if message is None:
                break
            await response.write(_encoded(*message))
    except (ConnectionResetError, BrokenPipeError):
        pass
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
    return response


def _encoded(event: str, data: str, event_id: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in data.splitlines() or [""])
    return f"event: {event}\n{f'id: {event_id}' if event_id else ':'}\n{lines}\n".encode()


async def watch_models(
    client: Client, namespace: str | None, since: str, selector: Mapping[str, str] | None
) -> AsyncIterator[tuple[str, Any]]:
    """Yield the watch's events as (type, object), and `trouble` with a message. The last pair is `stale`."""
    try:
        clock, on_time = asyncio.get_running_loop().time, True
        while on_time:
            started = clock()
            async for event in client.watch(
                MODEL_DEPLOYMENTS,
                namespace,
                resource_version=since,
                seconds=LASTS,
                silence=LASTS + 30,
                selector=selector,
            ):
                if event["type"] == "ERROR":
                    raise ApiError.from_status(500, event["object"], request="WATCH")
                since = event["object"]["metadata"]["resourceVersion"]
                yield event["type"], event["object"]
            # After an early end, the server may have been restored with other data. Only a full watch is resumed.
            on_time = abs(clock() - started - LASTS) <= ON_TIME
        await asyncio.sleep(AGAIN)
    except Unreachable as error:
        yield "trouble", of(error, "watch ModelDeployments").message
        await _until_answered(client, error)
    except ApiError as error:
        if not error.gone:
            yield "trouble", of(error, "watch ModelDeployments").message
            await asyncio.sleep(wait(REFUSED if error.code in (401, 403) else AGAIN, error, LONGEST_WAIT))
    yield "stale", ""


async def _until_answered(client: Client, failure: ApiError | Unreachable) -> None:
    """Return once the API server answers again. `failure` is the last failed request."""
    await asyncio.sleep(requested(failure, LONGEST_WAIT))
    while True:
        try:
            await client.read("/version")
        except (ApiError, Unreachable) as error:
            # A refusal is an answer, too. A server that starts returns 500 and 503.
            if isinstance(error, ApiError) and error.code < 500 and error.code != 429:
                return
            await asyncio.sleep(wait(AGAIN, error, LONGEST_WAIT))
        else:
            return


@routes.get("/live/models")
async def models(request: web.Request) -> web.StreamResponse:
    """Stream changed rows of the list of models, as server-sent events."""
    filter_ = Filter.of(request.query)
    since = request.headers.get("Last-Event-ID") or request.query.get("since", "")
    line = environment().get_template("parts.html").module.line  # type: ignore[attr-defined]

    async def messages(client: Client) -> AsyncIterator[Message]:
        async for kind, payload in watch_models(client, filter_.namespace or None, since, None):
            if isinstance(payload, str):
                yield kind, payload, ""
                continue
            version = payload["metadata"]["resourceVersion"]
            if kind in ("ADDED", "MODIFIED", "DELETED"):
                row = cells(payload, filter_.sort)
                key = f"{row['NAMESPACE']}/{row['NAME']}"
                # A changed model may leave the filter, for example by its phase.
                if kind == "DELETED" or not filter_.matches(row):
                    yield "gone", key, version
                else:
                    yield "row", json.dumps({"key": key, "html": line(row)}), version

    async with opened(request) as session:
        return await stream(request, messages(session.client))


@routes.get(f"/live/models/{{namespace:{NAME}}}/{{name:{NAME}}}")
async def model(request: web.Request) -> web.StreamResponse:
    """Stream an event for each change of a model."""
    name = request.match_info["name"]
    since = request.headers.get("Last-Event-ID") or request.query.get("since", "")

    async def messages(client: Client) -> AsyncIterator[Message]:
        selector = {"fieldSelector": f"metadata.name={name}"}
        async for kind, payload in watch_models(client, request.match_info["namespace"], since, selector):
            if isinstance(payload, str):
                yield kind, payload, ""
            elif kind in ("ADDED", "MODIFIED", "DELETED"):
                yield "changed", "", payload["metadata"]["resourceVersion"]

    async with opened(request) as session:
        return await stream(request, messages(session.client))
