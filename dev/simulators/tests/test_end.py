"""A simulated operator whose API server is gone ends when it is asked to."""

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
LONGEST = 10.0
"""Seconds: what waits for it gives it 30."""


@pytest.mark.slow
@pytest.mark.parametrize("webhooks", [True, False])
async def test_it_ends_without_its_server(tmp_path: Path, webhooks: bool) -> None:
    crd = standin("kaito").document
    established = [{"type": "Established", "status": "True"}]
    stored = {
        **crd,
        "metadata": {**crd["metadata"], "resourceVersion": "1", "uid": "u"},
        "status": {"conditions": established},
    }
    at_work = asyncio.Event()

    def answer(asked: Asked) -> web.Response:
        if "watch" in asked.query:
            return events()
        if "customresourcedefinitions" in asked.path:
            return ok({**LISTING, "kind": "CustomResourceDefinitionList", "items": [stored]})
        if "workspaces" in asked.path:
            # It has registered what it has before it looks at its objects.
            at_work.set()
        return ok({**LISTING, "kind": "WorkspaceList", "items": []})

    async with asyncio.timeout(SECONDS), wire(answer) as made:
        kubeconfig = tmp_path / "kubeconfig"
        named = {"name": "x", "cluster": {"server": made.client.server}}
        context = {"name": "x", "context": {"cluster": "x", "user": "x"}}
        user = {"name": "x", "user": {}}
        kubeconfig.write_text(
            json.dumps({"clusters": [named], "contexts": [context], "users": [user], "current-context": "x"})
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
    async with asyncio.timeout(LONGEST):
        assert await process.wait() == 0
