"""A run that is interrupted knows what it has made."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from kubefoundry_conformance.cases import Cases
from kubefoundry_conformance.cluster.rig import Rig
from kubefoundry_local.suite import Component
from kubefoundry_sdk.api.kinds import NAMESPACES
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.credentials import Credentials


async def test_what_the_api_server_makes_after_the_interruption_is_still_removed_at_the_end() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def create(request: web.Request) -> web.Response:
        asked.set()
        await answer.wait()
        return web.json_response({**await request.json(), "kind": "Namespace"})

    app = web.Application()
    app.router.add_post("/api/v1/namespaces", create)
    async with TestServer(app) as server:
        who = Credentials(str(server.make_url("")).rstrip("/"), None, lambda: "token")
        async with Client(who, user_agent="test") as api:
            rig = Rig(
                api,
                "p",
                cast(Component, None),
                "a",
                "n",
                "n",
                NAMESPACES,
                None,
                cast(Cases, None),
                asyncio.Runner(),
            )
            adding = asyncio.create_task(rig.add(NAMESPACES, {"metadata": {"name": "theirs"}}))
            await asked.wait()

            adding.cancel()
            answer.set()
            with pytest.raises(asyncio.CancelledError):
                await adding

    assert [made["metadata"]["name"] for _, made in rig.made] == ["theirs"]
