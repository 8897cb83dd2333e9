"""The web application: its routes, and the way each request takes to a page."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path
from typing import Final

from aiohttp import web

from kubefoundry_cli.failure import Exit, Failure
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
from kubefoundry_dashboard.page import ACCESS, VIEWER, WRITES, failed, page
from kubefoundry_dashboard.security import Handler, add_headers, asked_by_name, carries_token, same_origin

log = logging.getLogger(__name__)

NAMES: Final = web.AppKey[Collection[str]]("names")

OPEN: Final = ("/static/", "/healthz", "/sign-in")
"""Paths that need no viewer: they tell nothing."""

BODY: Final = 512 * 1024
"""Bytes of a form: a spec has 128 KiB at most, and each of its characters may be escaped."""

STATUS: Final = {
    Exit.NO: 404,
    Exit.USAGE: 400,
    Exit.CHANGED: 409,
    Exit.NO_CLUSTER: 503,
    Exit.FORBIDDEN: 403,
    Exit.TIMEOUT: 504,
}
"""HTTP status of a failure."""


def make(access: Access, *, names: Collection[str] = (), writes: bool = False) -> web.Application:
    """names: hosts under which the page is reached, besides this machine's own. writes: whether it may act."""
    app = web.Application(middlewares=[_explain, _guard], client_max_size=BODY)
    app[ACCESS], app[NAMES], app[WRITES] = access, names, writes
    app.on_response_prepare.append(add_headers)
    for part in (models, one_model, providers, create, doctor, live, talk, actions, sign_in):
        app.add_routes(part.routes)
    app.router.add_static("/static", Path(__file__).with_name("static"))
    app.router.add_get("/healthz", _alive)
    return app


async def _alive(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Who may come in at all."""
    if request.path == "/healthz":
        return await handler(request)
    if not asked_by_name(request, request.app[NAMES]):
        return failed(
            request,
            421,
            f"this page does not answer to the host name '{request.headers.get('Host', '')}'",
            next_step="kubefoundry-dashboard --host-name NAME allows one",
        )
    if not same_origin(request):
        return failed(request, 403, "the request comes from another site, so nothing was done")
    access = request.app[ACCESS]
    viewer = access.viewer(request)
    if viewer is not None:
        request[VIEWER] = viewer
    elif not request.path.startswith(OPEN) and not (request.path == "/" and "code" in request.query):
        return page(request, "sign_in.html", status=401, asks_for=access.asks_for, wrong="")
    if (
        request.method not in ("GET", "HEAD")
        and viewer is not None
        and not await carries_token(request, viewer)
    ):
        return failed(
            request, 403, "the form is out of date, so nothing was done", next_step="Go back and reload."
        )
    return await handler(request)


@web.middleware
async def _explain(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What a failure looks like."""
    try:
        return await handler(request)
    except Failure as failure:
        status = STATUS.get(Exit(failure.exit_code), 500)
        return failed(request, status, failure.message)
    except web.HTTPNotFound:
        return failed(request, 404, f"there is no page {request.path}", next_step="The models are at /.")
    except web.HTTPException as answer:
        if answer.status < 400:
            raise
        return failed(request, answer.status, answer.reason)
    except (ConnectionResetError, BrokenPipeError):
        raise
    except Exception as error:
        log.exception("internal error for %s", request.path)
        return failed(
            request, 500, f"internal error: {type(error).__name__}", next_step="The log has the details."
        )
