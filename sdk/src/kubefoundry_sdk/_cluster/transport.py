"""Sends requests to the API server, with its address and token, and within a deadline and size limits."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
from prometheus_client import Counter

from kubefoundry_sdk._api.foreign_json import Unreadable, decode
from kubefoundry_sdk._api.foreign_text import shown
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._cluster.errors import (
    UNROUTED,
    ApiError,
    Compressed,
    ForeignAnswer,
    NoToken,
    Silent,
    TooLong,
    Unreachable,
    seconds,
)

DEADLINE: Final = 30.0
"""Seconds that a call may take; the API server's own limit for a request is 60."""

CONNECT: Final = 20.0
"""Seconds to establish a connection, with TLS. An API server that stalls finishes no handshake."""

ERROR: Final = 2**20
"""Bytes of a refusal that are read."""

PLAIN: Final = frozenset({400, 401, 429})
"""Refusals that count as the API server's as plain text, whoever sends them. Go's HTTP server sends a 400 before the
API server sees the request. An authenticating proxy sends a 401 in any form, and a log-in helps then, too. A 429 asks
for a wait."""

CHAINED: Final = frozenset({405, 500, 503})
"""Refusals that an API server sends as plain text with AUDIT_ID: when it panics, and of the aggregator. A proxy sends
the same codes while it reaches no API server. All others of an API server are a Status (apiserver,
responsewriters)."""

AUDIT_ID: Final = "Audit-Id"
"""A header of each response that the API server's own handlers send (apiserver, filters/with_auditinit.go)."""


REQUESTS: Final = Counter(
    "rest_client_requests",
    "Requests to the API server by status code, method and host; the code is <error> if no response arrived.",
    ["code", "method", "host"],
)
"""The name and the labels are those of client-go."""

_WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"(?: "[^"]*")?')


_TOKEN: Final = "!#$&'*+-.^_`|~"
"""Characters beside letters and digits that a header's name may have; a percent sign is escaped, too."""


_before_sending: ContextVar[Callable[[], None] | None] = ContextVar("before_sending", default=None)


class _Connector(aiohttp.TCPConnector):
    """Calls `before` (see `exchange`) once the connection is established.

    Connecting may take seconds, and a process that was frozen meanwhile may not send any more.
    """

    async def connect(  # its timeout is aiohttp's signature
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109
    ) -> aiohttp.connector.Connection:
        connection = await super().connect(req, traces, timeout)
        if ask := _before_sending.get():
            try:
                ask()
            except BaseException:
                connection.release()
                raise
        return connection


class Transport:
    """Call `open` before the first exchange, `close` after the last. Everything raises ApiError or Unreachable."""

    def __init__(
        self, credentials: Credentials, *, user_agent: str, warned: Callable[[str], None] | None = None
    ) -> None:
        """Prepare the transport. `warned` is called with each warning in a response."""
        self._warned = warned
        self.server = credentials.server
        self._host = urlsplit(credentials.server).netloc
        self._credentials = credentials
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Open the session. Call it in the event loop that sends the requests."""
        self._session = aiohttp.ClientSession(
            # True verifies with the system's authorities: no URL may lead to an unverified connection
            connector=_Connector(ssl=self._credentials.tls or True, limit=64),
            headers=self._headers(),
            proxy=self._credentials.proxy,
            # A tenant's server answers behind `services/proxy`. Its cookie would go to every later request.
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=DEADLINE, sock_connect=CONNECT),
        )

    async def close(self) -> None:
        """Close the session and its connections."""
        if self._session:
            await self._session.close()

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
        """Return the response's body. Raise TooLong if it has more than `most` bytes.

        `before` is called at the last moment before the request is sent. If it raises, nothing is sent.
        """
        request = f"{method} {url}"
        options = self._options(data, headers)
        context_token = _before_sending.set(before)
        response = None
        try:
            async with self._opened().request(method, self._url(url, parameters), **options) as response:
                self._count(method, str(response.status))
                await _check(response, request)
                if self._warned:
                    for header in response.headers.getall("Warning", ()):
                        self._warned(warning(header))
                raw = await _read(response, most)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if response is None:
                self._count(method, "<error>")
            raise _no_response(error, request) from error
        finally:
            _before_sending.reset(context_token)
        if raw is None:
            raise TooLong(f"{request}: the response is longer than {most} bytes")
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
        """Yield the response's body piece by piece, for as long as it takes.

        `request` names the request in errors. After `silence` seconds without a byte the connection counts as dead,
        and Silent is raised.
        """
        options = {
            **self._options(None, headers),
            "timeout": aiohttp.ClientTimeout(total=None, sock_connect=CONNECT, sock_read=silence),
        }
        response = None
        try:
            async with self._opened().request(method, self._url(url, parameters), **options) as response:
                self._count(method, str(response.status))
                await _check(response, request)
                yield response.content.iter_any()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if response is None:
                self._count(method, "<error>")
            if isinstance(error, aiohttp.SocketTimeoutError):
                raise Silent(f"{request}: no data received for {silence or CONNECT:.0f} s") from error
            raise _no_response(error, request) from error

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
        """Yield status and body of a response that a tenant's server may have sent.

        Nothing in the response is taken for the API server's: no status is an ApiError, no warning is reported, and
        the metric of requests to the API server does not count it.

        Args:
            method: The HTTP method.
            url: A path below `services/proxy`.
            data: The request's body as JSON.
            request: The name of the request in errors.
            seconds: Seconds for the whole response, None for no limit.
            silence: Seconds without a byte after which the connection counts as dead.

        Raises:
            Unreachable: There is no response. Subclasses: Compressed, and Silent for one that is too slow.
        """
        # A compressed kilobyte may be a megabyte.
        plain = {"Accept": "*/*", "Accept-Encoding": "identity"}
        headers = {**plain, "Content-Type": "application/json"} if data is not None else plain
        options = {
            **self._options(data, headers),
            "timeout": aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT, sock_read=silence),
            "auto_decompress": False,
        }
        try:
            async with self._opened().request(method, self._url(url, None), **options) as response:
                if response.headers.get("Content-Encoding", "identity") != "identity":
                    raise Compressed(f"{request}: the response is compressed, which was not requested")
                yield response.status, response.content.iter_any()
        except TimeoutError as error:
            limit = silence if isinstance(error, aiohttp.SocketTimeoutError) or seconds is None else seconds
            raise Silent(f"{request}: no answer within {limit:.0f} s") from error
        except aiohttp.ClientHttpProxyError as error:
            raise _no_response(error, request) from error
        except (aiohttp.ClientError, OSError) as error:
            # The text of an error about the response may quote it.
            known = isinstance(error, (aiohttp.ClientConnectionError, OSError))
            raise Unreachable(f"{request}: {(known and str(error)) or type(error).__name__}") from error

    def _count(self, method: str, code: str) -> None:
        REQUESTS.labels(code, method, self._host).inc()

    def _headers(self) -> list[tuple[str, str]]:
        plain = [] if self._credentials.compressed else [("Accept-Encoding", "identity")]
        return [("User-Agent", self._user_agent), *plain, *_impersonation(self._credentials)]

    def _options(self, data: bytes | None, headers: Mapping[str, str]) -> dict[str, Any]:
        return {
            "data": data,
            "headers": {**headers, **self._authorization()},
            "server_hostname": self._credentials.tls_server_name,
            # An API server sends no redirects. A tenant's server, or one in between, may lead to any host.
            "allow_redirects": False,
        }

    def _authorization(self) -> dict[str, str]:
        """Return the header. Raise Unreachable if there is no token now; there may be one later."""
        try:
            token = self._credentials.token()
        except Exception as error:
            raise NoToken(f"no token for the API server: {error}") from error
        if token and not token.isprintable():
            raise NoToken("no token for the API server: the token holds a line break or a control character")
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the client is used outside its `async with`")
        return self._session

    def _url(self, url: str, parameters: Mapping[str, str] | None) -> str:
        query = f"?{urlencode(parameters)}" if parameters else ""
        return f"{self.server}{url}{query}"


def _impersonation(who: Credentials) -> Iterator[tuple[str, str]]:
    """Yield the headers for the user on whose behalf requests are sent (client-go, transport/round_trippers.go)."""
    if who.user:
        yield "Impersonate-User", who.user
    if who.uid:
        yield "Impersonate-Uid", who.uid
    for group in who.groups:
        yield "Impersonate-Group", group
    for key, values in who.extra:
        # a key may have characters that no header has
        name = f"Impersonate-Extra-{quote(key, safe=_TOKEN)}"
        for value in values:
            yield name, value


def warning(header: str) -> str:
    """Return the text of a warning header `299 - "…"`.

    The API server writes it so (apimachinery, net.NewWarningHeader).
    """
    match = _WARNING.fullmatch(header.strip())
    return re.sub(r"\\(.)", r"\1", match[1]) if match else header


def _no_response(error: Exception, request: str) -> Unreachable:
    """Return the error for a request to which the API server has not responded, or only in part."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        # The URL of the request is the proxy's, without the user and the password.
        proxy = error.request_info.real_url.origin()
        return ForeignAnswer(
            f"{request}: the proxy {proxy} does not connect to the API server: {error.status} {error.message}",
            retry_after=_retry_after(error.headers or {}),
        )
    return Unreachable(f"{request}: {str(error) or type(error).__name__}")


async def _check(response: aiohttp.ClientResponse, request: str) -> None:
    """Raise ApiError for a refusal, Unreachable for a status that no API server sends."""
    if response.status >= 400:
        raise await _refusal(response, request)
    if response.status >= 300:
        raise ForeignAnswer(
            f"{request}: the response is a redirect ({response.status}), which is not followed",
            retry_after=_retry_after(response.headers),
        )


async def _refusal(response: aiohttp.ClientResponse, request: str) -> ApiError | ForeignAnswer:
    raw = await _read(response, ERROR) or b""
    after = _retry_after(response.headers)
    try:
        body = decode(raw)
    except Unreadable:
        body = raw.decode(errors="replace")
    if not _is_of_api_server(response, body):
        kind = response.headers.get("Content-Type", "no content type")
        text = (
            f": {shown(' '.join(body.split()))}" if isinstance(body, str) and not _is_page(response) else ""
        )
        return ForeignAnswer(
            f"{request}: the response is a {response.status} ({kind}) that no API server sends{text}",
            response.status,
            retry_after=after,
        )
    return ApiError.from_status(response.status, body, retry_after=after, request=request)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    return seconds(headers.get("Retry-After"))


def _is_of_api_server(response: aiohttp.ClientResponse, body: Any) -> bool:
    """Check whether an API server may have sent the refusal.

    A server in between that lacks the path does not report a missing object, nor does its text report a missing
    permission or a conflict.
    """
    if not isinstance(body, str):
        is_status = isinstance(body, dict) and body.get("kind") == "Status"
        return is_status or response.status == 401
    if response.status == 404:
        return AUDIT_ID in response.headers and body.startswith(UNROUTED)
    if response.status in CHAINED and AUDIT_ID not in response.headers:
        return False
    return response.status in PLAIN | CHAINED and not _is_page(response)


def _is_page(response: aiohttp.ClientResponse) -> bool:
    return response.content_type == "text/html"


async def _read(response: aiohttp.ClientResponse, most: int) -> bytearray | None:
    """Return the body, or None if it is longer than `most` bytes."""
    raw = bytearray()
    async for chunk in response.content.iter_any():
        raw += chunk
        if len(raw) > most:
            # The rest is not worth reading, so the connection cannot be reused.
            response.close()
            return None
    return raw
