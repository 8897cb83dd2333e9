"""The pages with the logs of a model's pods, and the chat with the model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

from aiohttp import web

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.endpoint import answer
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.output import clean
from kubefoundry_cli.pods import NoLog, NotToBeFound, containers_of, log_lines, of_model
from kubefoundry_dashboard.live import Message, stream
from kubefoundry_dashboard.one_model import PATH, read, render_tab
from kubefoundry_dashboard.page import opened
from kubefoundry_dashboard.rendering import LONGEST
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

routes = web.RouteTableDef()

LINES: Final = 200
"""Lines of each container's log that the page shows at first."""

BYTES: Final = 256 * 1024
"""Bytes of these lines, at most: a container may write lines of any length."""

CONTAINERS: Final = 20
"""Containers whose logs a page shows, at most."""

QUESTION: Final = 20_000
"""Characters of a question, at most."""


@routes.get(f"{PATH}/logs")
async def logs(request: web.Request) -> web.Response:
    """Show the last lines of each container of a model."""
    previous = request.query.get("previous") == "1"
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await read(session, request)
        problem, lines = "", list[str]()
        try:
            containers = containers_of(await of_model(session, obj))
            several = len(containers) > 1
            tails = await asyncio.gather(
                *(_tail(session, pod, name, previous, several) for pod, name in containers[:CONTAINERS])
            )
            lines = [line for tail in tails for line in tail] + _hidden(request, containers)
            if not containers:
                problem = "No pods yet, so there is nothing to read."
        except NotToBeFound as error:
            problem = f"The pods cannot be found: {error}"
    return render_tab(request, "logs.html", obj, live=False, problem=problem, lines=lines, previous=previous)


async def _tail(session: Session, pod: Object, container: str, previous: bool, several: bool) -> list[str]:
    """Return the last lines of a container's log, up to BYTES, that arrive in time."""
    query = f"tailLines={LINES}&limitBytes={BYTES + 1}&previous={str(previous).lower()}"
    # The page waits for all logs.
    lines = log_lines(session, pod, container, query, is_whole=True)
    return [line async for line in _shown_lines(lines, pod, container, several, most=BYTES)]


async def _shown_lines(
    lines: AsyncIterator[bytes], pod: Object, container: str, several: bool, most: int | None = None
) -> AsyncIterator[str]:
    """Yield the lines of a log, up to `most` bytes. Yield an error as a line.

    Each line begins with pod and container if there are `several`. Long lines are cut.
    """
    source = f"{pod['metadata']['name']}/{container}"
    before, size = f"{source}  " if several else "", 0
    try:
        async for line in lines:
            size += len(line)
            # A kubelet that ignores limitBytes sends more.
            if most is not None and size > most:
                yield before + _shown(line[:LONGEST])
                yield f"{source}: the log is cut here, at {most // 1024} KiB"
                return
            yield before + _shown(line)
    except ApiError as error:
        yield f"{source}: {clean(error.message)}"
    except (NoLog, Unreachable) as error:
        yield f"{source}: {clean(error)}"


def _hidden(request: web.Request, containers: Sequence[tuple[Object, str]]) -> list[str]:
    """Return a line about the containers after the first CONTAINERS, if there are any."""
    more, name = len(containers) - CONTAINERS, request.match_info["name"]
    where = f"kubefoundry logs {name} -n {request.match_info['namespace']}"
    return [f"{more} more containers are not shown; all: {where}"] if more > 0 else []


def _shown(line: bytes) -> str:
    """Return a line of a log without control characters and with LONGEST characters at most."""
    text = clean(line[:LONGEST].decode(errors="replace").rstrip())
    return text if len(line) <= LONGEST else f"{text} … ({len(line)} bytes)"


@routes.get(f"{PATH}/logs/follow")
async def follow(request: web.Request) -> web.StreamResponse:
    """Stream the log lines of a model's containers, as server-sent events."""
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await read(session, request)
        try:
            containers = containers_of(await of_model(session, obj))
        except NotToBeFound:
            containers = []
        queue: asyncio.Queue[str] = asyncio.Queue(1000)

        async def pump(pod: Object, container: str) -> None:
            lines = log_lines(session, pod, container, f"tailLines={LINES}", follow=True)
            async for line in _shown_lines(lines, pod, container, len(containers) > 1):
                await queue.put(line)

        async def messages() -> AsyncIterator[Message]:
            tasks = [asyncio.create_task(pump(pod, name)) for pod, name in containers[:CONTAINERS]]
            try:
                for line in _hidden(request, containers):
                    yield "line", line, ""
                while not all(task.done() for task in tasks) or not queue.empty():
                    try:
                        yield "line", await asyncio.wait_for(queue.get(), 1.0), ""
                    except TimeoutError:
                        continue
                yield "stale", "", ""
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        return await stream(request, messages())


@routes.get(f"{PATH}/chat")
async def chat(request: web.Request) -> web.Response:
    """Show the form for a question to the model."""
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await read(session, request)
    return render_tab(request, "chat.html", obj, live=False, question="", written="", problem="")


@routes.post(f"{PATH}/chat")
async def ask(request: web.Request) -> web.StreamResponse:
    """Send the question to the model. Stream the answer with `stream=1`, else return a page with it."""
    question = str((await request.post()).get("question", "")).strip()
    if not question or len(question) > QUESTION:
        raise Failure(f"a question has 1 to {QUESTION} characters", Exit.USAGE)
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await read(session, request)
        pieces = answer(session, obj["metadata"]["name"], [{"role": "user", "content": question}], None)
        if "stream" not in request.query:
            answer_text, problem = "", ""
            try:
                answer_text = "".join([piece async for piece in pieces])
            except Failure as failure:
                problem = failure.message
            return render_tab(
                request, "chat.html", obj, live=False, question=question, written=answer_text, problem=problem
            )
        response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
        await response.prepare(request)
        try:
            async for piece in pieces:
                await response.write(piece.encode())
        except Failure as failure:
            await response.write(failure.message.encode())
        except (ConnectionResetError, BrokenPipeError):
            pass
        return response
