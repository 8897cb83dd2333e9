"""The installation: `kubefoundry doctor`."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from kubefoundry_cli.commands.doctor import examine
from kubefoundry_cli.hint import hint
from kubefoundry_dashboard.models import listed
from kubefoundry_dashboard.page import opened, page

SHOWN: Final = 60
"""Findings of trouble on the page at most, the worst first. A thousand stuck models make half a megabyte."""

routes = web.RouteTableDef()


@routes.get("/doctor")
async def show(request: web.Request) -> web.Response:
    async with opened(request) as session:
        seen = await listed(session, request.query.get("namespace", ""))
        found = await examine(session, seen.namespace or None)
    order = ("wrong", "unknown", "pending")
    troubles = sorted((one for one in found if one.state in order), key=lambda one: order.index(one.state))
    findings = [*troubles[:SHOWN], *(one for one in found if one.state == "good")]
    command = hint("doctor", seen.namespace) if seen.namespace else hint("doctor -A")
    return page(request, "doctor.html", findings=findings, hidden=len(troubles[SHOWN:]), command=command)
