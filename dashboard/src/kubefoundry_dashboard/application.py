"""The web application: routes, access checks before each request, and error pages."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path
from typing import Final

from aiohttp import web

from kubefoundry_cli.failure import Failure
from kubefoundry_dashboard import (
    actions,
    create,
    doctor,
    live,
    models,
    one_model,
    providers,
    sign_in,
    talk,
)
from kubefoundry_dashboard.access import Access
from kubefoundry_dashboard.page import ACCESS, VIEWER, WRITES, failure_page, page, status_of
from kubefoundry_dashboard.security import Handler, add_headers, carries_token, is_known_host, same_origin
from kubefoundry_sdk._cluster import logs

log = logging.getLogger(__name__)

NAMES: Final = web.AppKey[Collection[str]]("names")

OPEN: Final = ("/static/", "/healthz", "/sign-in")
"""Paths that need no viewer, because they reveal nothing about the cluster."""

BODY: Final = 512 * 1024
"""Bytes of a form, at most. A spec has up to 128 KiB, and URL encoding may triple each character."""


def make(access: Access, *, names: Collection[str] = (), writes: bool = False) -> web.Application:
    """Return the application.

    Args:
        access: The way to sign in.
        names: Host names of the page, besides the loopback names.
        writes: Whether viewers may change models.
    """
    app = web.Application(middlewares=[_explain, _guard], client_max_size=BODY)
    app[ACCESS], app[NAMES], app[WRITES] = access, names, writes
    app.on_response_prepare.append(add_headers)
    for module in (models, one_model, providers, create, doctor, live, talk, actions, sign_in):
        app.add_routes(module.routes)
    app.router.add_static("/static", Path(__file__).with_name("static"))
    app.router.add_get("/healthz", _alive)
    return app


async def _alive(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Reject unknown host names, other sites, viewers without a session, and forms without the viewer's token."""
    # The kubelet probes by the pod's address, which is no known host name.
    if request.path == "/healthz":
        return await handler(request)
    if not is_known_host(request, request.app[NAMES]):
        return failure_page(
            request,
            421,
            f"this page does not answer to the host name '{request.headers.get('Host', '')}'",
            next_step="kubefoundry-dashboard --host-name NAME allows one",
        )
    if not same_origin(request):
        return failure_page(request, 403, "the request comes from another site, so nothing was done")
    access = request.app[ACCESS]
    viewer = access.viewer(request)
    if viewer is not None:
        request[VIEWER] = viewer
    elif not _is_open(request):
        return page(request, "sign_in.html", status=401, asks_for=access.asks_for, wrong="")
    if (
        request.method not in ("GET", "HEAD")
        and viewer is not None
        and not await carries_token(request, viewer)
    ):
        return failure_page(
            request, 403, "the form is out of date, so nothing was done", next_step="Go back and reload."
        )
    return await handler(request)


def _is_open(request: web.Request) -> bool:
    """Check whether the request needs no session: it is part of a sign-in, or returns from one."""
    return request.path.startswith(OPEN) or (request.path == "/" and "code" in request.query)


@web.middleware
async def _explain(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn exceptions into error pages."""
    try:
        return await handler(request)
    except Failure as failure:
        return failure_page(request, status_of(failure), failure.message)
    except web.HTTPNotFound:
        return failure_page(
            request, 404, f"there is no page {request.path}", next_step="The models are at /."
        )
    except web.HTTPException as response:
        # Handlers raise redirects too, and those are no errors.
        if response.status < 400:
            raise
        return failure_page(request, response.status, response.reason)
    except (ConnectionResetError, BrokenPipeError):
        # The browser has closed the connection: nobody reads an error page.
        raise
    except Exception as error:
        log.exception("internal error", extra=logs.values(path=request.path))
        return failure_page(
            request, 500, f"internal error: {type(error).__name__}", next_step="The log has the details."
        )
