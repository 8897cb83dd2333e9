"""The installation: `kubefoundry doctor`."""

from __future__ import annotations

from aiohttp import web

from kubefoundry_cli.commands.doctor import examine
from kubefoundry_dashboard.models import listed
from kubefoundry_dashboard.page import opened, page

routes = web.RouteTableDef()


@routes.get("/doctor")
async def show(request: web.Request) -> web.Response:
    async with opened(request) as session:
        seen = await listed(session, request.query.get("namespace", ""))
        found = await examine(session, seen.namespace or None)
    order = ("wrong", "unknown", "pending", "good")
    return page(request, "doctor.html", findings=sorted(found, key=lambda one: order.index(one.state)))
