"""The page with the findings of `kubefoundry doctor`."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from kubefoundry_cli.checks.examination import examine
from kubefoundry_cli.hint import hint
from kubefoundry_dashboard.models import list_models
from kubefoundry_dashboard.page import opened, page

SHOWN: Final = 60
"""Problems on the page, at most, the worst first. A thousand stuck models would make half a megabyte."""

routes = web.RouteTableDef()


@routes.get("/doctor")
async def show(request: web.Request) -> web.Response:
    """Show the problems of the installation and its models, the worst first."""
    async with opened(request) as session:
        # A viewer who may not list all namespaces gets the findings of one. A named one is examined in any case.
        named = request.query.get("namespace", "")
        namespace = named or (await list_models(session, "")).namespace
        findings = await examine(session, namespace or None)
    order = ("wrong", "unknown", "pending")
    problems = sorted(
        (finding for finding in findings if finding.state in order),
        key=lambda finding: order.index(finding.state),
    )
    healthy = [finding for finding in findings if finding.state == "good"]
    return page(
        request,
        "doctor.html",
        findings=[*problems[:SHOWN], *healthy],
        hidden=len(problems[SHOWN:]),
        command=hint("doctor", namespace) if namespace else hint("doctor -A"),
    )
