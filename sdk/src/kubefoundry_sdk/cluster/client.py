"""The API server, as far as we talk to it: JSON over one aiohttp session, every call with a deadline.

Nothing is retried here: whoever calls knows whether the call may be repeated (the work queue does that).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from types import TracebackType
from typing import Any, Final, Literal
from urllib.parse import quote, urlencode

import aiohttp

from kubefoundry_sdk.api.foreign_json import Unreadable, decode, encode
from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.cluster.congestion import Congestion
from kubefoundry_sdk.cluster.credentials import Credentials
from kubefoundry_sdk.cluster.errors import ApiError, Silent, Unreachable, seconds
from kubefoundry_sdk.cluster.rate import RateLimit

DEADLINE: Final = 30.0
"""Seconds that a call may take; the API server's own limit for a request is 60."""

PAGE: Final = 500
"""Objects a list call asks for at most, as kubectl does."""

PAGE_BYTES: Final = 4 * 2**20
"""Bytes of a page that are read; where there are more, a page of fewer objects is asked for. 500 ModelDeployments of
the usual size have half of that, and as Python objects a page takes about ten times its bytes."""

ANSWER: Final = 16 * 2**20
"""Bytes of one object that are read: etcd takes 1.5 MiB, which JSON's escapes may make nine."""

ERROR: Final = 2**20
"""Bytes of a refusal that are read."""

APPLY: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""An `Accept` without an alternative: a server that cannot leave the content out refuses (406)."""


class Client:
    """Use as `async with Client(credentials, ...) as client`. Calls raise ApiError or Unreachable."""

    def __init__(self, credentials: Credentials, *, user_agent: str, qps: float = 0) -> None:
        """`qps`: requests a second at most, watches apart; 0 leaves it to the API server's own fairness."""
        self._credentials = credentials
        self._user_agent = user_agent
        self._rate = RateLimit(qps)
        self._session: aiohttp.ClientSession | None = None
        self._fence: Callable[[], None] | None = None
        self._congestion: Congestion | None = None

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self._credentials.server

    def behind(self, fence: Callable[[], None], congestion: Congestion | None = None) -> Client:
        """This client, which asks before each write. fence: raises Fenced where nothing may be written.

        congestion: gets the time that each write took.
        """
        fenced = copy(self)
        fenced._fence, fenced._congestion = fence, congestion
        return fenced

    async def __aenter__(self) -> Client:
        connector = aiohttp.TCPConnector(ssl=self._credentials.tls or False, limit=64)
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self._user_agent, "Accept": "application/json"},
            timeout=aiohttp.ClientTimeout(total=DEADLINE, sock_connect=5),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session:
            await self._session.close()

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        return await self._call("GET", path(kind, namespace, name))

    async def get_metadata(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """The object's metadata; its content is not sent."""
        return await self._call("GET", path(kind, namespace, name), accept=METADATA_ONLY)

    async def read(self, url: str, *, most: int = ANSWER) -> Object:
        """GET of a path that is no resource, for example `/version`. most: bytes that are read."""
        return await self._call("GET", url, most=most)

    async def pages(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        selector: Mapping[str, str] | None = None,
        limit: int = PAGE,
    ) -> AsyncIterator[tuple[list[Object], str]]:
        """All objects page by page, each with the resource version of the whole listing.

        `selector`: `labelSelector` and `fieldSelector` parameters. limit: objects of a page at most; of objects that
        are large a page has fewer, PAGE_BYTES in all.
        """
        parameters: dict[str, str] = {**(selector or {})}
        most = limit
        while True:
            parameters["limit"] = str(limit)
            try:
                bound = PAGE_BYTES if limit > 1 else ANSWER
                raw = await self._exchange("GET", path(kind, namespace), parameters, most=bound)
            except _TooLong:
                if limit == 1:
                    raise
                limit = max(1, limit // 8)
                continue
            page = _object(raw, f"GET {path(kind, namespace)}")
            yield _items(page), page["metadata"]["resourceVersion"]
            token = page["metadata"].get("continue")
            if not token:
                return
            parameters["continue"] = str(token)
            if len(raw) < bound // 4:
                limit = min(2 * limit, most)

    async def send(self, url: str, body: Mapping[str, Any], *, most: int = ANSWER) -> Object:
        """POST to a path that is no resource: of a Service, by the API server's proxy. most: bytes that are read."""
        return await self._call("POST", url, None, body, most=most)

    async def lines(self, url: str, body: Mapping[str, Any] | None = None) -> AsyncIterator[bytes]:
        """Lines of an answer as they come, for as long as it takes: of a log, or of a model that writes.

        With a body it is a POST. Lines keep their end; a line longer than PAGE_BYTES comes in pieces.
        """
        method = "GET" if body is None else "POST"
        headers = {"Accept": "*/*", **self._authorization()}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        data = None if body is None else _sent(body, f"{method} {url}")
        if data is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with self._open().request(
                method, self._url(url, None), headers=headers, data=data, timeout=timeout
            ) as response:
                if response.status >= 400:
                    raise await self._error(response, f"{method} {url}")
                rest = bytearray()
                async for chunk in response.content.iter_any():
                    rest += chunk
                    *whole, last = bytes(rest).split(b"\n")
                    for line in whole:
                        yield line + b"\n"
                    rest = bytearray(last)
                    if len(rest) > PAGE_BYTES:
                        yield bytes(rest)
                        rest.clear()
                if rest:
                    yield bytes(rest)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"{method} {url}: {error or type(error).__name__}") from error

    async def list(
        self, kind: Kind, namespace: str | None = None, *, selector: Mapping[str, str] | None = None
    ) -> tuple[list[Object], str]:
        """All objects, and the resource version to watch from; see `pages`."""
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
        """Watch events from `resource_version` on, bookmarks included, until the server ends the watch.

        seconds: how long the server is asked to keep it. silence: seconds without a byte after which the
        connection counts as dead. Raises Unreachable then, Silent where that was all that happened, ApiError when
        the watch is refused.
        """
        parameters = {
            **(selector or {}),
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
        }
        url = path(kind, namespace)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=silence)
        headers = self._authorization()
        try:
            async with self._open().get(
                self._url(url, parameters), headers=headers, timeout=timeout
            ) as response:
                if response.status != 200:
                    raise await self._error(response, f"WATCH {url}")
                # Not readline(): aiohttp bounds a line at 128 KiB, and a CRD alone may have a megabyte.
                rest = bytearray()
                async for chunk in response.content.iter_any():
                    start = 0
                    while (end := chunk.find(b"\n", start)) >= 0:
                        rest += chunk[start:end]
                        if rest.strip():
                            yield _event(rest, url)
                        rest.clear()
                        start = end + 1
                    rest += chunk[start:]
                if rest.strip():
                    raise Unreachable(f"WATCH {url}: the answer ends within an event")
        except aiohttp.SocketTimeoutError as error:
            raise Silent(f"WATCH {url}: nothing came for {silence:.0f} s") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"WATCH {url}: {error or type(error).__name__}") from error

    async def apply(
        self, kind: Kind, body: Object, *, manager: str, force: bool = True, dry_run: bool = False
    ) -> Object:
        """Server-side apply of the object that `body` names; the answer is the object as stored."""
        return await self._apply(kind, body, "", manager, force, dry_run)

    async def apply_status(self, kind: Kind, body: Object, *, manager: str, force: bool = True) -> Object:
        """Server-side apply of the status subresource."""
        return await self._apply(kind, body, "/status", manager, force, False)

    async def create(self, kind: Kind, body: Object, *, manager: str, dry_run: bool = False) -> Object:
        parameters = {"fieldManager": manager, "fieldValidation": "Strict"}
        if dry_run:
            parameters["dryRun"] = "All"
        return await self._call("POST", path(kind, body["metadata"].get("namespace")), parameters, body)

    async def ask(self, kind: Kind, body: Object) -> Object:
        """POST of a kind that is answered and not stored, such as a review: no write."""
        return await self._call("POST", path(kind), None, body, writes=False)

    async def replace(self, kind: Kind, body: Object, *, manager: str) -> Object:
        """PUT: refused with a conflict unless `body` carries the current resource version."""
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
        url = path(kind, namespace, name) + subresource
        return await self._call("PATCH", url, {"fieldManager": manager}, operations, JSON_PATCH)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        *,
        uid: str,
        propagation: Literal["Background", "Foreground", "Orphan"] = "Background",
    ) -> None:
        """Delete that very object: another one of the same name is a conflict."""
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": {"uid": uid},
        }
        await self._call("DELETE", path(kind, namespace, name), None, body)

    async def _apply(
        self, kind: Kind, body: Object, subresource: str, manager: str, force: bool, dry_run: bool
    ) -> Object:
        meta = body["metadata"]
        # Strict: a field that the schema does not know is an error to us, never silently lost.
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
        content_type: str = "application/json",
        accept: str = "application/json",
        most: int = ANSWER,
        writes: bool = True,
    ) -> Object:
        raw = await self._exchange(method, url, parameters, body, content_type, accept, most, writes)
        return _object(raw, f"{method} {url}")

    async def _exchange(
        self,
        method: str,
        url: str,
        parameters: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        most: int = ANSWER,
        writes: bool = True,
    ) -> bytearray:
        request = f"{method} {url}"
        headers = {"Accept": accept, **self._authorization()}
        data: bytes | None = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = _sent(body, request)
        await self._rate.turn()
        changes = writes and method != "GET"
        if self._fence and changes:
            self._fence()
        with self._congestion.write(method, url) if self._congestion and changes else nullcontext():
            try:
                async with self._open().request(
                    method, self._url(url, parameters), headers=headers, data=data
                ) as response:
                    if response.status >= 400:
                        raise await self._error(response, request)
                    raw = await _read(response, most)
                    if raw is None:
                        raise _TooLong(f"{request}: the answer is longer than {most} bytes")
                    return raw
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise Unreachable(f"{request}: {error or type(error).__name__}") from error

    async def _error(self, response: aiohttp.ClientResponse, request: str) -> ApiError:
        raw = await _read(response, ERROR) or b""
        try:
            body = decode(raw)
        except Unreadable:
            body = raw.decode(errors="replace")
        after = seconds(response.headers.get("Retry-After"))
        return ApiError.from_status(response.status, body, retry_after=after, request=request)

    def _authorization(self) -> dict[str, str]:
        """Raises Unreachable where there is no token for the moment: files and plugins come and go."""
        try:
            token = self._credentials.token()
        except Exception as error:
            raise Unreachable(f"no token to speak to the API server with: {error}") from error
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the client is used outside its `async with`")
        return self._session

    def _url(self, url: str, parameters: Mapping[str, str] | None) -> str:
        query = f"?{urlencode(parameters)}" if parameters else ""
        return f"{self._credentials.server}{url}{query}"


def path(kind: Kind, namespace: str | None = None, name: str | None = None) -> str:
    """URL path of a collection or an object."""
    # What is in an annotation may come to be part of a kind.
    version = quote(kind.version, safe="")
    root = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
    inside = f"/namespaces/{quote(namespace, safe='')}" if namespace and kind.namespaced else ""
    return f"{root}{inside}/{kind.plural}" + (f"/{quote(name, safe='')}" if name else "")


def _items(page: Object) -> list[Object]:
    """The objects of a page. Raises Unreachable where whoever answers is no API server."""
    items, meta = page.get("items"), page.get("metadata")
    version = meta.get("resourceVersion") if isinstance(meta, dict) else None
    if not isinstance(version, str) or not version.isdecimal() or not isinstance(items, list | None):
        raise Unreachable("a list was asked for, and the answer is none")
    return items or []


def _object(raw: bytearray, request: str) -> Object:
    answer = _decoded(raw, request)
    if not isinstance(answer, dict):
        raise Unreachable(f"{request}: the answer is no object")
    return answer


class _TooLong(Unreachable):
    """More bytes than asked for: the rest was not read."""


async def _read(response: aiohttp.ClientResponse, most: int) -> bytearray | None:
    """The body; None where it is longer than `most` bytes."""
    raw = bytearray()
    async for chunk in response.content.iter_any():
        raw += chunk
        if len(raw) > most:
            # What is left is not worth reading, so the connection cannot be used again.
            response.close()
            return None
    return raw


def _decoded(raw: bytes | bytearray, request: str) -> Any:
    try:
        return decode(raw, served=True)
    except Unreadable as error:
        raise Unreachable(f"{request}: the answer is no JSON ({error})") from error


def _event(raw: bytes | bytearray, url: str) -> Object:
    """A watch event. Raises Unreachable where whoever answers is no API server."""
    event = _decoded(raw, f"WATCH {url}")
    if not isinstance(event, dict) or not isinstance(event.get("object"), dict) or "type" not in event:
        raise Unreachable(f"WATCH {url}: the answer is no watch event")
    return event


def _sent(body: Any, request: str) -> bytes:
    try:
        return encode(body)
    except ValueError as error:
        raise ApiError(400, "BadRequest", f"the object cannot be sent: {error}", request=request) from error
