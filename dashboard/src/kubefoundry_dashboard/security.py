"""Headers of every response, and checks of every request."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Collection
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from kubefoundry_dashboard.access import Viewer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With `no-referrer`, the Origin of the page's own forms would be `null`, and `same_origin` would reject them.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
"""Host names that no foreign DNS server can point here."""

CSRF: Final = "csrf"
"""The form field with the viewer's token. With `X-` in front, the name of the header."""


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Set the security headers. `on_response_prepare` calls it for streams and errors, too."""
    response.headers.update(HEADERS)
    response.headers.popall("Server", None)


def is_known_host(request: web.Request, names: Collection[str]) -> bool:
    """Check whether the Host header has a name of this page. An unknown name may be DNS rebinding."""
    try:
        host = urlsplit(f"//{request.headers.get('Host', '')}").hostname
    except ValueError:
        return False
    return host in LOOPBACK or host in names


def same_origin(request: web.Request) -> bool:
    """Check whether the request comes from this page. A request that changes something must have an Origin."""
    origin = request.headers.get("Origin")
    if origin is None:
        return request.method in ("GET", "HEAD")
    return urlsplit(origin).netloc == request.headers.get("Host")


async def carries_token(request: web.Request, viewer: Viewer) -> bool:
    """Check whether the header (from the page's script) or the form carries the viewer's token."""
    token = request.headers.get(f"X-{CSRF}")
    if token is None:
        field = (await request.post()).get(CSRF)
        token = field if isinstance(field, str) else ""
    return hmac.compare_digest(token.encode(errors="replace"), viewer.csrf.encode())
