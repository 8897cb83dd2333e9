"""Serves the paths of the webhooks, within limits for reviews. Pure functions compute the answers.

Without `--webhook-client-ca`, anyone who reaches the port may send a review. The limits bound the memory and the time
in the event loop that such a client can take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

from aiohttp import web

from kubefoundry_core import conversion
from kubefoundry_core.admission import crd_deletions, modeldeployments, providerconfigs
from kubefoundry_core.admission.metrics import count_verdict, measured
from kubefoundry_core.admission.reading import Judge, answered
from kubefoundry_core.conversion import CONVERSIONS, Conversions
from kubefoundry_core.crd_protection import PATH as CRD_DELETIONS
from kubefoundry_sdk._api.foreign_json import encode
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

MUTATE: Final = "/mutate"
VALIDATE: Final = "/validate"
REGISTRATIONS: Final = "/validate-providerconfig"
"""Paths of the webhooks for ModelDeployments and InferenceProviderConfigs."""

OBJECT: Final = 1536 * 1024
"""Bytes of the largest object that etcd stores (`--max-request-bytes`). A larger object cannot be stored, whatever a
webhook answers."""

AROUND: Final = 64 * 1024
"""Bytes of the fields around the objects of a review."""

MAX_BODY: Final = 2 * OBJECT + AROUND
"""Bytes of the largest review of an admission: the new and the old object."""

MAX_CONVERSION: Final = OBJECT + AROUND
"""Bytes of the largest conversion. The API server converts each object on its own, also those of a list (1.36: 25,118
reviews with one object each). 1.5 MiB of brackets take 110 MiB of memory. Their number is not limited here."""

SMALL: Final = 64 * 1024
"""Bytes of the largest review that is answered in the event loop, within milliseconds. For most such reviews, a
switch to a thread would take longer than the answer."""

WAITING: Final = 8
"""Large reviews that may wait while another one is read or answered. Further ones get a 503."""

PATIENCE: Final = 1.6
"""Seconds for each step of a review (the turn, the body): a little less than the API server waits for the answer."""

WAITING_CONVERSIONS: Final = 64
"""Large conversions that may wait. Each holds at most 128 KiB of its body, the buffer of its connection."""

CONVERSION_TURN: Final = 20.0
"""Seconds until the turn of a large conversion: the API server waits 30 s, and a refusal fails a whole list."""


Answer = Callable[[bytes], bytes]
"""Returns the answer to the bytes of a review. Raises ValueError if they are not a review."""


class _Intake:
    """Accepts reviews within limits, and answers them: small ones in the loop, large ones in a thread, in turn.

    Args:
        thread: Held while a large review is answered. All intakes share it, because it bounds the memory.
        patience: Seconds for the body.
        turn: Seconds until the turn of a large review.
        waiting: Large reviews that may wait.
        most: Bytes of the largest review.
        small: Bytes of the largest review that is answered in the loop.
    """

    def __init__(
        self,
        thread: asyncio.Lock,
        patience: float,
        *,
        turn: float,
        waiting: int,
        most: int,
        small: int = SMALL,
    ) -> None:
        self._thread = thread
        self._patience = patience
        self._turn_within = turn
        self._most_waiting = waiting
        self._most = most
        self._small = small
        self._large = asyncio.Semaphore(1)
        self._waiting = 0

    async def respond(self, request: web.Request, answer: Answer) -> web.Response:
        """Return the answer to a review, or an error if the review is malformed or exceeds a limit."""
        try:
            return await self._take(request, answer)
        except ValueError as error:
            return _error(400, str(error))
        except TimeoutError:
            return _error(503, "the review could not be read in time")

    async def _take(self, request: web.Request, answer: Answer) -> web.Response:
        size = request.content_length
        if size is None:
            return _error(411, "Content-Length is required")
        if size > self._most:
            return _error(413, f"the review is too large: at most {self._most} bytes are allowed")
        if size <= self._small:
            return _json(answer(await self._body(request)))
        if self._waiting >= self._most_waiting:
            return _error(503, "too many reviews at the same time")
        await self._turn()
        try:
            body = await self._body(request)
            async with self._thread:
                return _json(await asyncio.to_thread(answer, body))
        finally:
            self._large.release()

    async def _turn(self) -> None:
        """Wait for the large review before this one.

        Raises:
            TimeoutError: The turn does not come in time.
        """
        self._waiting += 1
        try:
            async with asyncio.timeout(self._turn_within):
                await self._large.acquire()
        finally:
            self._waiting -= 1

    async def _body(self, request: web.Request) -> bytes:
        """Read the body.

        Raises:
            TimeoutError: The sender is too slow, and must not block other reviews.
        """
        async with asyncio.timeout(self._patience):
            return await request.read()


def application(
    registered: Callable[[], Mapping[str, Object]],
    left: Callable[[str], int],
    models: Callable[[], Awaitable[Sequence[str]]],
    *,
    record_creator: bool = False,
    conversions: Conversions = CONVERSIONS,
    patience: float = PATIENCE,
) -> web.Application:
    """Return the application that serves the webhooks' paths.

    Args:
        registered: Returns the current InferenceProviderConfigs by name.
        left: Returns the bytes by which the ModelDeployments of a namespace may grow.
        models: Reads "namespace/name" of the ModelDeployments.
        record_creator: Whether to record who creates a ModelDeployment.
        conversions: The fields of each version.
        patience: Seconds for each step of a review.
    """
    thread = asyncio.Lock()
    intake = _Intake(thread, patience, turn=patience, waiting=WAITING, most=MAX_BODY)
    conversion_intake = _Intake(
        thread, patience, turn=CONVERSION_TURN, waiting=WAITING_CONVERSIONS, most=MAX_CONVERSION
    )
    # A review of 5 KB may hold rules that take seconds to compile (`providerconfigs.MOST_SECONDS`).
    registrations = _Intake(thread, patience, turn=patience, waiting=WAITING, most=MAX_BODY, small=0)
    reading = asyncio.Lock()

    async def mutation(request: web.Request) -> web.Response:
        change = partial(modeldeployments.mutate, record_creator=record_creator)
        return await intake.respond(request, _admission(MUTATE, change))

    async def validation(request: web.Request) -> web.Response:
        # Read the registrations here: a thread must not read a store that the loop changes.
        judge = partial(modeldeployments.validate, registered=registered(), left=left)
        return await intake.respond(request, _admission(VALIDATE, judge))

    async def registration(request: web.Request) -> web.Response:
        return await registrations.respond(request, _admission(REGISTRATIONS, providerconfigs.validate))

    async def convert(request: web.Request) -> web.Response:
        answer = partial(conversion.answer, conversions=conversions)
        return await conversion_intake.respond(request, answer)

    async def crd_deletion(request: web.Request) -> web.Response:
        try:
            # One at a time: a stranger must not make core flood the API server.
            async with asyncio.timeout(patience), reading:
                existing = await models()
        except (ApiError, Unreachable) as error:
            return _error(503, f"cannot read whether ModelDeployments exist: {error}")
        except TimeoutError:
            return _error(503, "reading whether ModelDeployments exist took too long")
        judge = partial(crd_deletions.validate, models=existing)
        return await intake.respond(request, _admission(CRD_DELETIONS, judge))

    app = web.Application(client_max_size=MAX_BODY, middlewares=[measured])
    app.add_routes(
        [
            web.post(MUTATE, mutation),
            web.post(VALIDATE, validation),
            web.post(REGISTRATIONS, registration),
            web.post(CRD_DELETIONS, crd_deletion),
            web.post(conversion.PATH, convert),
        ]
    )
    return app


def _admission(webhook: str, judge: Judge) -> Answer:
    return lambda body: encode(count_verdict(webhook, answered(body, judge)))


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")


def _error(status: int, text: str) -> web.Response:
    """Return a response that is not a review. It closes the connection without reading the rest of the body."""
    response = web.Response(status=status, text=f"{text}\n")
    response.force_close()
    return response
