"""The webhook's paths: how many and how large reviews it accepts, and where it answers them. The answers are
pure functions.

Anyone who reaches the port may send a review, unless `--webhook-client-ca` demands a certificate. So nothing that a
stranger sends takes more memory, or blocks the loop for longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

from aiohttp import web

from kubefoundry_core.admission import crd_deletions, modeldeployments, providerconfigs
from kubefoundry_core.admission.reading import Judge, answered
from kubefoundry_core.admission.review import Review
from kubefoundry_core.crd_protection import PATH as CRD_DELETIONS
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable

MAX_BODY: Final = 2 * 1536 * 1024 + 64 * 1024
"""The largest review in bytes: an object and the one it replaces, each at most the 1.5 MiB that etcd stores
(`--max-request-bytes`), and the fields around them. Anything larger cannot be stored, whatever a webhook answers."""

SMALL: Final = 64 * 1024
"""Reviews of at most that many bytes are answered in the loop, within milliseconds. A hop to a thread costs more than
most of them take."""

WAITING: Final = 8
"""Large reviews that may wait for the one that is read or answered; further ones are turned away."""

PATIENCE: Final = 1.6
"""Seconds to get a turn and to send the body: a little less than the API server waits for the answer."""


def application(
    registered: Callable[[], Mapping[str, Object]],
    left: Callable[[str], int],
    models: Callable[[], Awaitable[Sequence[str]]],
    *,
    patience: float = PATIENCE,
) -> web.Application:
    """registered: returns the current InferenceProviderConfigs by name. left: the bytes by which a namespace's
    ModelDeployments may grow. models: reads "namespace/name" of the ModelDeployments."""
    reading = asyncio.Lock()
    large = asyncio.Semaphore(1)
    waiting = 0

    async def take(request: web.Request, judge: Judge) -> web.Response:
        nonlocal waiting
        size = request.content_length
        if size is None:
            return _said(411, "Content-Length is required")
        if size > MAX_BODY:
            return _said(413, f"the review is too large: at most {MAX_BODY} bytes are allowed")
        if size <= SMALL:
            async with asyncio.timeout(patience):
                body = await request.read()
            return web.json_response(answered(body, judge))
        if waiting >= WAITING:
            return _said(503, "too many large reviews at the same time")
        waiting += 1
        try:
            async with asyncio.timeout(patience):
                await large.acquire()
        finally:
            waiting -= 1
        try:
            async with asyncio.timeout(patience):
                body = await request.read()
            return web.json_response(await asyncio.to_thread(answered, body, judge))
        finally:
            large.release()

    def path(judge: Callable[[], Judge]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handler(request: web.Request) -> web.Response:
            try:
                # Collect the answer's inputs here: a thread must not read what the loop changes.
                return await take(request, judge())
            except ValueError as error:
                return _said(400, str(error))
            except TimeoutError:
                return _said(503, "reading the review took too long")

        return handler

    def validating() -> Callable[[object], Review]:
        return partial(modeldeployments.validate, registered=registered(), left=left)

    async def crd_deletion(request: web.Request) -> web.Response:
        try:
            # One at a time: a stranger must not make core flood the API server.
            async with asyncio.timeout(patience), reading:
                there = await models()
        except (ApiError, Unreachable) as error:
            return _said(503, f"cannot read whether ModelDeployments exist: {error}")
        except TimeoutError:
            return _said(503, "reading whether ModelDeployments exist took too long")
        return await path(lambda: partial(crd_deletions.validate, models=there))(request)

    made = web.Application(client_max_size=MAX_BODY)
    made.add_routes(
        [
            web.post("/mutate", path(lambda: modeldeployments.mutate)),
            web.post("/validate", path(validating)),
            web.post("/validate-providerconfig", path(lambda: providerconfigs.validate)),
            web.post(CRD_DELETIONS, crd_deletion),
        ]
    )
    return made


def _said(status: int, text: str) -> web.Response:
    """A response that is not a review. Closes the connection without waiting for the rest of the body."""
    answer = web.Response(status=status, text=f"{text}\n")
    answer.force_close()
    return answer
