"""The page with the providers: their health, their findings, and the number of their models."""

from __future__ import annotations

from collections import Counter

from aiohttp import web

from kubefoundry_cli.checks.examination import providers as findings
from kubefoundry_cli.failure import Failure
from kubefoundry_cli.health import provider_of
from kubefoundry_cli.requested import registered_configs
from kubefoundry_dashboard.models import list_models
from kubefoundry_dashboard.page import opened, page

routes = web.RouteTableDef()


@routes.get("/providers")
async def show(request: web.Request) -> web.Response:
    """Show the providers and the number of models that each serves."""
    async with opened(request) as session:
        configs = sorted(
            await registered_configs(session), key=lambda config: str(config["metadata"]["name"])
        )
        try:
            models = (await list_models(session, "")).objects
        except Failure:
            # A viewer without rights to models still sees the providers.
            models = ()
    counts = Counter(provider_of(obj) for obj in models)
    return page(
        request,
        "providers.html",
        configs=[
            (config, next(iter(findings([config]))), counts[config["metadata"]["name"]]) for config in configs
        ],
    )
