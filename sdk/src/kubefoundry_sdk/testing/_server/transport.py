"""Binds a `Client` to a server in memory: no sockets, no threads, and the client's own checks of answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._cluster.errors import ApiError, Silent, TooLong
from kubefoundry_sdk._cluster.transport import Transport
from kubefoundry_sdk.testing._server import errors
from kubefoundry_sdk.testing._server.requests import Answer, Request
from kubefoundry_sdk.testing._server.resources import Resource
from kubefoundry_sdk.testing._server.selectors import Selects
from kubefoundry_sdk.testing._server.server import Server
from kubefoundry_sdk.testing._server.store import Change
from kubefoundry_sdk.testing._server.writes import in_version

CREDENTIALS: Final = Credentials("memory://", None, lambda: None)
"""Credentials for a server that asks for none."""

BOOKMARK: Final = 60.0
"""Seconds between bookmarks."""


class MemoryTransport(Transport):
    """Sends requests to a server in memory.

    `warned` is called with each warning in a response, `asked` with each request before it is answered, and
    `answered` with each request and its answer. An error of the last two is the client's answer.
    """

    def __init__(
        self,
        server: Server,
        *,
        user_agent: str,
        warned: Callable[[str], None] | None = None,
        asked: Callable[[Request], None] | None = None,
        answered: Callable[[Request, Answer], None] | None = None,
    ) -> None:
        super().__init__(CREDENTIALS, user_agent=user_agent, warned=warned)
        self._memory = server
        self._agent = user_agent
        self._notify = warned
        self._asked = asked
        self._answered = answered

    async def open(self) -> None:
        """Do nothing: there is no session."""

    async def close(self) -> None:
        """Do nothing: there is no session."""

    async def exchange(
        self,
        method: str,
        url: str,
        parameters: Mapping[str, str] | None,
        data: bytes | None,
        headers: Mapping[str, str],
        most: int,
        before: Callable[[], None] | None = None,
    ) -> bytearray:
        """Answer a request, as Transport.exchange does."""
        await asyncio.sleep(0)
        if before:
            before()
        request = Request(
            method,
            url,
            parameters or {},
            data,
            headers.get("Content-Type", ""),
            headers.get("Accept", ""),
            self._agent,
        )
        if self._asked:
            self._asked(request)
        answer = self._memory.answer(request)
        if self._answered:
            self._answered(request, answer)
        if answer.code >= 400:
            raise ApiError.from_status(answer.code, answer.body, request=f"{method} {url}")
        for text in answer.warnings if self._notify else ():
            assert self._notify
            self._notify(text)
        raw = bytearray(json.dumps(answer.body).encode())
        if len(raw) > most:
            raise TooLong(f"{method} {url}: the response is longer than {most} bytes")
        return raw

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        parameters: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str],
        request: str,
        silence: float | None = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the events of a watch, as Transport.stream does."""
        await asyncio.sleep(0)
        query = dict(parameters or {})
        asked = Request(method, url, query, accept=headers.get("Accept", ""))
        try:
            if not query.get("watch"):
                raise errors.unknown_feature(f"the stream {url}")
            resource, namespace, selects, version = self._memory.watched(asked)
        except errors.Refused as error:
            raise ApiError.from_status(error.code, error.status, request=request) from error
        watch = _Watch(self._memory, resource, namespace, selects, version)
        yield watch.lines(float(query.get("timeoutSeconds", "300")), silence, request)


class _Watch:
    """One watch of a resource from a version on."""

    def __init__(
        self, server: Server, resource: Resource, namespace: str, selects: Selects, version: int
    ) -> None:
        self._server = server
        self._resource = resource
        self._namespace = namespace
        self._selects = selects
        self._version = version

    async def lines(self, duration: float, silence: float | None, request: str) -> AsyncIterator[bytes]:
        """Yield the events as lines until the duration is over. Raise Silent if none comes for too long."""
        store, loop = self._server.store, asyncio.get_running_loop()
        changed = asyncio.Event()
        listeners = store.listeners[self._resource.storage]
        listeners[changed.set] = None
        ends, heard, marked = loop.time() + duration, loop.time(), loop.time()
        try:
            while True:
                # Before the news: a change while the reader is busy with an event must wake this loop up again.
                changed.clear()
                for line in self._news():
                    heard = loop.time()
                    yield line
                now = loop.time()
                if now >= ends:
                    return
                if silence is not None and now >= heard + silence:
                    raise Silent(f"{request}: no data received for {silence:.0f} s")
                # A bookmark says that there is no news up to its version.
                if now >= marked + BOOKMARK and not changed.is_set():
                    heard = marked = now
                    yield self._bookmark()
                dead = heard + silence if silence is not None else ends
                try:
                    async with asyncio.timeout_at(min(ends, marked + BOOKMARK, dead)):
                        await changed.wait()
                except TimeoutError:
                    continue
        finally:
            listeners.pop(changed.set, None)

    def _news(self) -> Iterator[bytes]:
        for change in self._server.store.since(self._version, self._resource.storage):
            self._version = change.version
            if (event := self._event(change)) is not None:
                yield _line(event)

    def _event(self, change: Change) -> Object | None:
        """Return the event of a change as this watch sees it, None if it does not concern its selection."""
        if self._namespace and change.new["metadata"].get("namespace") != self._namespace:
            return None
        is_selected = change.type != "DELETED" and self._selects(change.new)
        was_selected = change.old is not None and self._selects(change.old)
        if not is_selected and not was_selected:
            return None
        type_ = "DELETED" if not is_selected else "MODIFIED" if was_selected else "ADDED"
        return {"type": type_, "object": in_version(change.new, self._resource)}

    def _bookmark(self) -> bytes:
        meta: Any = {"resourceVersion": str(self._server.store.version), "creationTimestamp": None}
        head = {"apiVersion": self._resource.api_version, "kind": self._resource.kind}
        self._version = self._server.store.version
        return _line({"type": "BOOKMARK", "object": {**head, "metadata": meta}})


def _line(event: Object) -> bytes:
    return json.dumps(event).encode() + b"\n"
