"""What every page is made with: its viewer, a session with the API server in their name, and the template."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web

from kubefoundry_cli.cluster import MANAGER, Session
from kubefoundry_dashboard.access import Access, Viewer
from kubefoundry_dashboard.rendering import environment
from kubefoundry_sdk.cluster.client import Client

ACCESS: Final = web.AppKey[Access]("access")
WRITES: Final = web.AppKey[bool]("writes")
VIEWER: Final = web.RequestKey[Viewer]("viewer")


def viewer_of(request: web.Request) -> Viewer:
    """Whose request it is; of a path that needs a viewer."""
    return request[VIEWER]


@asynccontextmanager
async def opened(request: web.Request, namespace: str | None = None) -> AsyncIterator[Session]:
    """A session with the API server, with the viewer's rights, for the time of the request."""
    viewer = viewer_of(request)
    async with Client(viewer.credentials, user_agent=MANAGER) as client:
        yield Session(client, namespace or viewer.namespace)


def page(request: web.Request, template: str, *, status: int = 200, **values: Any) -> web.Response:
    """A template with what every page shows."""
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


def failed(request: web.Request, status: int, message: str, *, next_step: str = "") -> web.Response:
    """A page that says what did not work and, where something helps, what."""
    return page(request, "failure.html", status=status, code=status, message=message, next_step=next_step)
