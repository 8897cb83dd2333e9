"""The parts of every page: the viewer, a session with the API server in the viewer's name, and the template."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web

from kubefoundry_cli.cluster import MANAGER, Session
from kubefoundry_cli.failure import Exit, Failure, Missing
from kubefoundry_dashboard.access import Access, Viewer
from kubefoundry_dashboard.rendering import environment
from kubefoundry_sdk._cluster.client import Client

ACCESS: Final = web.AppKey[Access]("access")
WRITES: Final = web.AppKey[bool]("writes")
VIEWER: Final = web.RequestKey[Viewer]("viewer")

STATUS: Final = {
    Exit.NO: 409,
    Exit.USAGE: 400,
    Exit.CHANGED: 409,
    Exit.NO_CLUSTER: 503,
    Exit.FORBIDDEN: 403,
    Exit.TIMEOUT: 504,
}
"""HTTP status by exit code of a failure."""


@asynccontextmanager
async def opened(request: web.Request, namespace: str | None = None) -> AsyncIterator[Session]:
    """Open a session with the API server for one request, with the viewer's rights."""
    viewer = request[VIEWER]
    async with Client(viewer.credentials, user_agent=MANAGER) as client:
        yield Session(client, namespace or viewer.namespace)


def page(request: web.Request, template: str, *, status: int = 200, **values: Any) -> web.Response:
    """Render a template with the values that every page shows."""
    viewer = request.get(VIEWER)
    text = (
        environment()
        .get_template(template)
        .render(
            path=request.path,
            server=viewer.credentials.server if viewer else "",
            csrf=viewer.csrf if viewer else "",
            writes=request.app[WRITES],
            **values,
        )
    )
    return web.Response(text=text, content_type="text/html", status=status)


def failure_page(request: web.Request, status: int, message: str, *, next_step: str = "") -> web.Response:
    """Render an error page. `next_step` tells the viewer how to go on, if there is a way."""
    return page(request, "failure.html", status=status, code=status, message=message, next_step=next_step)


def status_of(failure: Failure) -> int:
    """Return the HTTP status of a failure."""
    return 404 if isinstance(failure, Missing) else STATUS[Exit(failure.exit_code)]
