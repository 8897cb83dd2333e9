"""A client for the API server: JSON over one aiohttp session, with a deadline for every call.

It retries nothing, because only the caller knows whether a call may be repeated. The work queue retries reconciles.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from copy import copy
from types import TracebackType
from typing import Any, Final, Literal

from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.congestion import Congestion
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._cluster.errors import TooLong, Unreachable
from kubefoundry_sdk._cluster.rate import RateLimit
from kubefoundry_sdk._cluster.repetition import Repetition
from kubefoundry_sdk._cluster.requests import (
    APPLY,
    JSON,
    JSON_PATCH,
    METADATA_ONLY,
    path,
    sent,
)
from kubefoundry_sdk._cluster.responses import event_of, items_of, lines_of, object_of, resource_of
from kubefoundry_sdk._cluster.transport import Transport

PAGE: Final = 500
"""The most objects that a list call requests, as in kubectl."""

PAGE_BYTES: Final = 4 * 2**20
"""The most bytes of a page. Instead of a longer page, the client requests one with fewer objects. 500
ModelDeployments of the usual size have half of these bytes. As Python objects, a page takes about ten times its
bytes."""

ANSWER: Final = 16 * 2**20
"""The most bytes of one object. etcd accepts 1.5 MiB, which may become 9 MiB with JSON's escapes."""


class Client:
    """Use it as `async with Client(credentials, ...) as client`. Calls raise ApiError or Unreachable."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        user_agent: str,
        qps: float = 0,
        warned: Callable[[str], None] | None = None,
    ) -> None:
        """Prepare a client; `async with` opens its connections.

        Args:
            credentials: The credentials.
            user_agent: The name of the program in requests.
            qps: The most requests a second, without watches; 0 leaves it to the API server's priority and fairness.
            warned: Called with each warning in a response, from admission or about the request.
        """
        self._transport = Transport(credentials, user_agent=user_agent, warned=warned)
        self._rate = RateLimit(qps)
        self._fence: Callable[[], None] | None = None
        self._congestion: Congestion | None = None
        self._repetition: Repetition | None = None

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self._transport.server

    async def __aenter__(self) -> Client:
        await self._transport.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.close()

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return an object. Raise ApiError if the server refuses, Unreachable if it does not answer."""
        return await self._call("GET", path(kind, namespace, name))

    async def get_metadata(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return the object with its metadata only; the server does not send its content."""
        return await self._call("GET", path(kind, namespace, name), accept=METADATA_ONLY)

    async def read(self, url: str) -> Object:
        """GET a path that is not a resource, for example `/version`."""
        return await self._call("GET", url, form=object_of)

    async def pages(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        selector: Mapping[str, str] | None = None,
        limit: int = PAGE,
    ) -> AsyncIterator[tuple[list[Object], str]]:
        """Yield all objects page by page, each page with the resource version of the whole list.

        Args:
            kind: The kind.
            namespace: The namespace; None for all.
            selector: `labelSelector` and `fieldSelector` parameters.
            limit: The most objects in a page; of large objects a page has fewer, with at most PAGE_BYTES.
        """
        parameters: dict[str, str] = {**(selector or {})}
        most = limit
        while True:
            parameters["limit"] = str(limit)
            try:
                bound = PAGE_BYTES if limit > 1 else ANSWER
                raw = await self._exchange("GET", path(kind, namespace), parameters, most=bound)
            except TooLong:
                if limit == 1:
                    raise
                limit = max(1, limit // 8)
                continue
            page = object_of(raw, f"GET {path(kind, namespace)}")
            yield items_of(page), page["metadata"]["resourceVersion"]
            token = page["metadata"].get("continue")
            if not token:
                return
            parameters["continue"] = str(token)
            if len(raw) < bound // 4:
                limit = min(2 * limit, most)

    async def send(self, url: str, body: Mapping[str, Any]) -> Object:
        """POST to a path that is not a resource, such as the token of a ServiceAccount."""
        return await self._call("POST", url, None, body, form=object_of)

    async def lines(self, url: str) -> AsyncIterator[bytes]:
        """Yield the lines of a log as they arrive, for as long as it takes.

        Lines keep their end. A line longer than PAGE_BYTES comes in pieces.
        """
        async with self._transport.stream(
            "GET", url, headers={"Accept": "*/*"}, request=f"GET {url}"
        ) as chunks:
            async for line in lines_of(chunks, PAGE_BYTES):
                yield bytes(line)

    @asynccontextmanager
    async def proxied(
        self,
        method: str,
        url: str,
        data: bytes | None,
        *,
        request: str,
        seconds: float | None,
        silence: float,
    ) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """Yield the response of a server behind the API server's proxy, as `Transport.proxied`."""
        await self._rate.turn()
        async with self._transport.proxied(
            method, url, data, request=request, seconds=seconds, silence=silence
        ) as response:
            yield response

    async def list(
        self, kind: Kind, namespace: str | None = None, *, selector: Mapping[str, str] | None = None
    ) -> tuple[list[Object], str]:
        """Return all objects, and the resource version to watch from; see `pages`."""
        items: list[Object] = []
        version = ""
        async for page, version in self.pages(kind, namespace, selector=selector):  # noqa: B007 (the last one)
            items.extend(page)
        return items, version

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        resource_version: str,
        seconds: int,
        silence: float,
        selector: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Object]:
        """Yield watch events from `resource_version` on, bookmarks included, until the server ends the watch.

        Args:
            kind: The kind.
            namespace: The namespace; None for all.
            resource_version: The version after which events are sent.
            seconds: The time for which the server is asked to keep the watch open.
            silence: Seconds without a byte after which the connection counts as dead.
            selector: `labelSelector` and `fieldSelector` parameters.

        Raises:
            Unreachable: The connection is lost. Silent, a subclass, if it only received no data.
            ApiError: The watch is refused.
        """
        parameters = {
            **(selector or {}),
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
        }
        url = path(kind, namespace)
        request = f"WATCH {url}"
        async with self._transport.stream(
            "GET", url, parameters, headers={"Accept": JSON}, request=request, silence=silence
        ) as chunks:
            async for line in lines_of(chunks):
                if not line.strip():
                    continue
                if not line.endswith(b"\n"):
                    raise Unreachable(f"{request}: the response ends within an event")
                yield event_of(line, request)

    async def apply(
        self, kind: Kind, body: Object, *, manager: str, force: bool = True, dry_run: bool = False
    ) -> Object:
        """Apply the object that `body` names by server-side apply, and return it as stored."""
        return await self._apply(kind, body, "", manager, force, dry_run)

    async def apply_status(self, kind: Kind, body: Object, *, manager: str, force: bool = True) -> Object:
        """Apply the status subresource by server-side apply, and return the object as stored."""
        return await self._apply(kind, body, "/status", manager, force, False)

    async def create(self, kind: Kind, body: Object, *, manager: str, dry_run: bool = False) -> Object:
        """Create the object, and return it as stored. The server rejects unknown fields."""
        parameters = {"fieldManager": manager, "fieldValidation": "Strict"}
        if dry_run:
            parameters["dryRun"] = "All"
        return await self._call("POST", path(kind, body["metadata"].get("namespace")), parameters, body)

    async def ask(self, kind: Kind, body: Object) -> Object:
        """POST an object that the server answers and does not store, such as a review. Does not count as a write."""
        return await self._call("POST", path(kind), None, body, writes=False, form=object_of)

    async def replace(self, kind: Kind, body: Object, *, manager: str) -> Object:
        """Replace the object (PUT). Fails with a conflict unless `body` carries the current resource version."""
        meta = body["metadata"]
        return await self._call(
            "PUT", path(kind, meta.get("namespace"), meta["name"]), {"fieldManager": manager}, body
        )

    async def json_patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        operations: Sequence[Mapping[str, Any]],
        *,
        manager: str,
        subresource: Literal["", "/status"] = "",
    ) -> Object:
        """Apply a JSON patch (RFC 6902) to the object or its subresource, and return the object as stored."""
        url = path(kind, namespace, name) + subresource
        return await self._call("PATCH", url, {"fieldManager": manager}, operations, JSON_PATCH)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        *,
        uid: str,
        version: str | None = None,
        propagation: Literal["Background", "Foreground", "Orphan"] = "Background",
    ) -> None:
        """Delete the object with that uid.

        Another object of the same name causes a conflict. With `version`, a resource version, so does a changed
        object.
        """
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": {"uid": uid},
        }
        if version:
            body["preconditions"]["resourceVersion"] = version
        await self._call("DELETE", path(kind, namespace, name), None, body, form=object_of)

    async def _apply(
        self, kind: Kind, body: Object, subresource: str, manager: str, force: bool, dry_run: bool
    ) -> Object:
        meta = body["metadata"]
        # Strict: a field that the schema does not know is an error, never lost silently.
        parameters = {"fieldManager": manager, "fieldValidation": "Strict", "force": str(force).lower()}
        if dry_run:
            parameters["dryRun"] = "All"
        url = path(kind, meta.get("namespace"), meta["name"]) + subresource
        return await self._call("PATCH", url, parameters, body, APPLY)

    async def _call(
        self,
        method: str,
        url: str,
        parameters: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
        most: int = ANSWER,
        writes: bool = True,
        form: Callable[[bytearray, str], Object] = resource_of,
    ) -> Object:
        raw = await self._exchange(method, url, parameters, body, content_type, accept, most, writes)
        return form(raw, f"{method} {url}")

    async def _exchange(
        self,
        method: str,
        url: str,
        parameters: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
        most: int = ANSWER,
        writes: bool = True,
    ) -> bytearray:
        headers = {"Accept": accept}
        data: bytes | None = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = sent(body, f"{method} {url}")
        is_write = writes and method != "GET"
        note_accepted = None
        # A dry run changes nothing, so it causes no event that would repeat it.
        if is_write and self._repetition and "dryRun" not in (parameters or {}):
            note_accepted = self._repetition.admit(f"{method} {url}", parameters, body)
        await self._rate.turn()
        fence = self._fence if is_write else None
        if fence:
            fence()
        with self._congestion.write(method, url) if self._congestion and is_write else nullcontext():
            answer = await self._transport.exchange(method, url, parameters, data, headers, most, fence)
        if note_accepted:
            note_accepted()
        return answer


def over(client: Client, transport: Transport) -> Client:
    """Return the client with another transport, such as one to an API server in memory."""
    moved = copy(client)
    moved._transport = transport
    return moved


def behind(
    client: Client,
    fence: Callable[[], None],
    congestion: Congestion | None = None,
    repetition: Repetition | None = None,
) -> Client:
    """Return the client with a check before each write.

    Args:
        client: The client, which stays as it is.
        fence: Raises Fenced if writing is not allowed.
        congestion: Receives the duration of each write.
        repetition: Raises Repeated if the same write is sent again and again.
    """
    fenced = copy(client)
    fenced._fence, fenced._congestion, fenced._repetition = fence, congestion, repetition
    return fenced
