"""What changes while a page is open: one watch for each page that is looked at, sent as server-sent events.

Events: `row` and `gone` of the list, `changed` of one model, `trouble` while the API server does not answer, `stale`
when the page has to be read again. The id is the resource version to go on from.
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
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.cluster.reflector import ON_TIME

routes = web.RouteTableDef()

BEAT: Final = 10.0
"""Seconds without an event after which a line is sent, so that both ends see a connection that is dead."""

LASTS: Final = 300
"""Seconds for which the server is asked to keep a watch."""

AGAIN: Final = 1.0
"""Seconds between two looks at an API server that does not answer."""

REFUSED: Final = 30.0
"""Seconds before another try where watching is forbidden."""

NAME: Final = "[a-z0-9][-a-z0-9.]{0,252}"
"""Of namespaces and models, as a pattern of paths: nothing else can be stored."""

Message = tuple[str, str, str]
"""Event, data and id."""


async def stream(request: web.Request, messages: AsyncIterator[Message]) -> web.StreamResponse:
    """Sends the messages until they end or nobody reads them any more."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
    await response.prepare(request)
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


def _encoded(event: str, data: str, mark: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in data.splitlines() or [""])
    return f"event: {event}\n{f'id: {mark}' if mark else ':'}\n{lines}\n".encode()


async def watched(
    client: Client, namespace: str | None, since: str, selector: Mapping[str, str] | None
) -> AsyncIterator[tuple[str, Any]]:
    """Events of the watch, and `trouble` and `stale`; ends with `stale`."""
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
            # What has ended it early may have come back with other data.
            on_time = abs(clock() - started - LASTS) <= ON_TIME
        await asyncio.sleep(AGAIN)
    except Unreachable as error:
        yield "trouble", of(error, "watch ModelDeployments").message
        await _answer(client)
    except ApiError as error:
        if not error.gone:
            yield "trouble", of(error, "watch ModelDeployments").message
            await asyncio.sleep(REFUSED if error.code in (401, 403) else AGAIN)
    yield "stale", ""


async def _answer(client: Client) -> None:
    """Returns once the API server answers again."""
    while True:
        try:
            await client.read("/version")
        except Unreachable:
            await asyncio.sleep(AGAIN)
        except ApiError as error:
            if error.code < 500:
                return
            await asyncio.sleep(AGAIN)
        else:
            return


@routes.get("/live/models")
async def models(request: web.Request) -> web.StreamResponse:
    wanted = Filter.of(request.query)
    since = request.headers.get("Last-Event-ID") or request.query.get("since", "")
    line = environment().get_template("parts.html").module.line  # type: ignore[attr-defined]

    async def messages(client: Client) -> AsyncIterator[Message]:
        async for kind, found in watched(client, wanted.namespace or None, since, None):
            if isinstance(found, str):
                yield kind, found, ""
                continue
            mark = found["metadata"]["resourceVersion"]
            if kind in ("ADDED", "MODIFIED", "DELETED"):
                row = cells(found)
                key = f"{row['NAMESPACE']}/{row['NAME']}"
                if kind == "DELETED" or not wanted.takes(row):
                    yield "gone", key, mark
                else:
                    yield "row", json.dumps({"key": key, "html": line(row)}), mark

    async with opened(request) as session:
        return await stream(request, messages(session.client))


@routes.get(f"/live/models/{{namespace:{NAME}}}/{{name:{NAME}}}")
async def model(request: web.Request) -> web.StreamResponse:
    name = request.match_info["name"]
    since = request.headers.get("Last-Event-ID") or request.query.get("since", "")

    async def messages(client: Client) -> AsyncIterator[Message]:
        selector = {"fieldSelector": f"metadata.name={name}"}
        async for kind, found in watched(client, request.match_info["namespace"], since, selector):
            if isinstance(found, str):
                yield kind, found, ""
            elif kind in ("ADDED", "MODIFIED", "DELETED"):
                yield "changed", "", found["metadata"]["resourceVersion"]

    async with opened(request) as session:
        return await stream(request, messages(session.client))
