"""A simulated operator stops on SIGTERM even if its API server is gone."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from aiohttp import web

from support.upstream import standin
from support.waiting import SECONDS
from support.wire import Asked, events, ok, wire

LISTING = {"apiVersion": "v1", "metadata": {"resourceVersion": "1"}}


@pytest.mark.slow
@pytest.mark.parametrize("webhooks", [True, False])
async def test_simulator_stops_without_its_api_server(tmp_path: Path, webhooks: bool) -> None:
    crd = standin("kaito").document
    established = [{"type": "Established", "status": "True"}]
    stored = {
        **crd,
        "metadata": {**crd["metadata"], "resourceVersion": "1", "uid": "u"},
        "status": {"conditions": established},
    }
    at_work = asyncio.Event()

    def answer(request: Asked) -> web.Response:
        if "watch" in request.query:
            return events()
        if "customresourcedefinitions" in request.path:
            return ok({**LISTING, "kind": "CustomResourceDefinitionList", "items": [stored]})
        if "workspaces" in request.path:
            # The simulator registers its webhooks before it lists its objects.
            at_work.set()
        return ok({**LISTING, "kind": "WorkspaceList", "items": []})

    async with asyncio.timeout(SECONDS), wire(answer) as server:
        kubeconfig = tmp_path / "kubeconfig"
        cluster = {"name": "x", "cluster": {"server": server.client.server}}
        context = {"name": "x", "context": {"cluster": "x", "user": "x"}}
        user = {"name": "x", "user": {}}
        kubeconfig.write_text(
            json.dumps(
                {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "x"}
            )
        )
        flags = ["--webhooks"] if webhooks else []
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "kubefoundry_simulators",
            "--kubeconfig",
            str(kubeconfig),
            "--only=kaito",
            *flags,
        )
        await at_work.wait()
    process.terminate()
    async with asyncio.timeout(SECONDS):
        assert await process.wait() == 0
