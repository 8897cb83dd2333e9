"""The providers: whether they report, what they found upstream, and how many models they run."""

from __future__ import annotations

from collections import Counter

from aiohttp import web

from kubefoundry_cli.commands.doctor import providers as findings
from kubefoundry_cli.failure import Failure
from kubefoundry_cli.health import provider_of
from kubefoundry_cli.requested import registered_configs
from kubefoundry_dashboard.models import listed
from kubefoundry_dashboard.page import opened, page

routes = web.RouteTableDef()


@routes.get("/providers")
async def show(request: web.Request) -> web.Response:
    async with opened(request) as session:
        configs = sorted(
            await registered_configs(session), key=lambda config: str(config["metadata"]["name"])
        )
        try:
            models = (await listed(session, "")).objects
        except Failure:
            models = ()
    counts = Counter(provider_of(obj) for obj in models)
    return page(
        request,
        "providers.html",
        configs=[
            (config, next(iter(findings([config]))), counts[config["metadata"]["name"]]) for config in configs
        ],
    )
