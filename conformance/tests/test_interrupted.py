"""An interrupted run records the objects that it has created."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from kubefoundry_conformance.cases import Cases
from kubefoundry_conformance.cluster.rig import Rig
from kubefoundry_local.suite import Component
from kubefoundry_sdk._api.kinds import NAMESPACES
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials


async def test_object_created_after_cancellation_is_recorded() -> None:
    requested, response = asyncio.Event(), asyncio.Event()

    async def create(request: web.Request) -> web.Response:
        requested.set()
        await response.wait()
        return web.json_response({**await request.json(), "kind": "Namespace"})

    app = web.Application()
    app.router.add_post("/api/v1/namespaces", create)
    async with TestServer(app) as server:
        admin = Credentials(str(server.make_url("")).rstrip("/"), None, lambda: "token")
        async with Client(admin, user_agent="test") as api:
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
            await requested.wait()

            adding.cancel()
            response.set()
            with pytest.raises(asyncio.CancelledError):
                await adding

    assert [obj["metadata"]["name"] for _, obj in rig.cluster_objects] == ["theirs"]
