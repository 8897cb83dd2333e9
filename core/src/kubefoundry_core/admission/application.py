"""The webhook's three paths; what each answers is a pure function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from aiohttp import web

from kubefoundry_core.admission import modeldeployments, providerconfigs
from kubefoundry_core.admission.review import Malformed, Review
from kubefoundry_sdk.api.foreign_json import Unreadable, decode
from kubefoundry_sdk.api.kinds import Object

MAX_BODY: Final = 8 * 1024 * 1024
"""Bytes of a review: twice an object of etcd's 1.5 MiB, JSON escapes included."""


def application(registered: Callable[[], Mapping[str, Object]]) -> web.Application:
    """registered: the InferenceProviderConfigs of this moment, by name."""
    made = web.Application(client_max_size=MAX_BODY)
    made.add_routes(
        [
            web.post("/mutate", _answering(modeldeployments.mutate)),
            web.post("/validate", _answering(lambda review: modeldeployments.validate(review, registered()))),
            web.post("/validate-providerconfig", _answering(providerconfigs.validate)),
        ]
    )
    return made


def _answering(
    answer: Callable[[Any], Review],
) -> Callable[[web.Request], Any]:
    async def handler(request: web.Request) -> web.Response:
        try:
            review = decode(await request.read())
        except Unreadable as error:
            return web.Response(status=400, text=f"the body is no JSON: {error}\n")
        try:
            return web.json_response(answer(review))
        except Malformed as error:
            return web.Response(status=400, text=f"{error}\n")

    return handler
