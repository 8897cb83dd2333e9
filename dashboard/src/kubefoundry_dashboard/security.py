"""What every request and response has to keep to, whatever the page does."""

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
    # Not no-referrer: a form's own Origin would be `null` with it, and could not be compared.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
"""Names that no other machine's DNS can give to a page of its own."""

CSRF: Final = "csrf"
"""The form field, and with `X-` the header, that carries the viewer's token."""


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """A signal, so that streams and errors have them too."""
    response.headers.update(HEADERS)
    response.headers.popall("Server", None)


def asked_by_name(request: web.Request, names: Collection[str]) -> bool:
    """Whether the Host is one of ours: another one is a foreign page whose name points here (DNS rebinding)."""
    try:
        host = urlsplit(f"//{request.headers.get('Host', '')}").hostname
    except ValueError:
        return False
    return host in LOOPBACK or host in names


def same_origin(request: web.Request) -> bool:
    """Whether a page of ours sends it. A request that changes something has to say where it comes from."""
    origin = request.headers.get("Origin")
    if origin is None:
        return request.method in ("GET", "HEAD")
    return urlsplit(origin).netloc == request.headers.get("Host")


async def carries_token(request: web.Request, viewer: Viewer) -> bool:
    """Whether the form, or a script of ours, has the viewer's token."""
    given = request.headers.get(f"X-{CSRF}")
    if given is None:
        found = (await request.post()).get(CSRF)
        given = found if isinstance(found, str) else ""
    return hmac.compare_digest(given.encode(errors="replace"), viewer.csrf.encode())
