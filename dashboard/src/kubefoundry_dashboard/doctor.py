"""The installation: `kubefoundry doctor`."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from kubefoundry_cli.commands.doctor import examine
from kubefoundry_dashboard.models import listed
from kubefoundry_dashboard.page import opened, page

SHOWN: Final = 60
"""Findings on the page at most, the worst first: hundreds of stuck models make a page of half a megabyte."""

routes = web.RouteTableDef()


@routes.get("/doctor")
async def show(request: web.Request) -> web.Response:
    async with opened(request) as session:
        seen = await listed(session, request.query.get("namespace", ""))
        found = await examine(session, seen.namespace or None)
    order = ("wrong", "unknown", "pending", "good")
    findings = sorted(found, key=lambda finding: order.index(finding.state))
    command = f"kubefoundry doctor -n {seen.namespace}" if seen.namespace else "kubefoundry doctor -A"
    return page(
        request, "doctor.html", findings=findings[:SHOWN], hidden=len(findings[SHOWN:]), command=command
    )
