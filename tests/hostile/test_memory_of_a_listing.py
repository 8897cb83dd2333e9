"""A start on a cluster in which a tenant keeps many large ModelDeployments stays far below the memory limit, and sees
those of all other tenants."""

from __future__ import annotations

import asyncio
import json
import random
import sys

import pytest
from aiohttp import web

from support.wire import Asked, wire

COUNT, BYTES = 240, 1_000_000
QUIET = 8
"""Of another tenant, at the end of the list."""
LIMIT = 150 * 2**20
"""Bytes: half of what is left of a component's 256 MiB after its start, and the start."""

START = r"""
import asyncio, re, sys
from pathlib import Path
from kubefoundry_core.controller import reported_health
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._cluster.reflector import reflect
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._runtime.store import Store

async def main():
    logs.set_up("text", "info")
    async with Client(Credentials(sys.argv[1], None, lambda: None), user_agent="t") as client:
        store = Store(index=reported_health)
        watching = asyncio.create_task(reflect(client, MODEL_DEPLOYMENTS, store, bounded=store))
        await store.synced.wait()
        watching.cancel()
        # not ru_maxrss: a process that was started by another begins with that one's
        [most] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        print(len(store), sum(namespace == "quiet" for namespace, _ in store.keys()), int(most) * 1024)

asyncio.run(main())
"""


def large(number: int) -> str:
    """One whose text does not deflate to less than half."""
    text = random.Random(number).randbytes(BYTES // 2).hex()
    namespace = "loud" if number < COUNT - QUIET else "quiet"
    meta = {"name": f"m{number:03}", "namespace": namespace, "resourceVersion": str(number + 1)}
    return json.dumps({"metadata": meta, "spec": {"provider": {"overrides": {"x": text}}}})


@pytest.mark.slow
async def test_large_deployments_are_listed_within_the_limit() -> None:
    objects = [large(number) for number in range(COUNT)]

    def answer(asked: Asked) -> web.Response:
        start, limit = int(asked.query.get("continue", 0)), int(asked.query.get("limit", 0))
        end = start + limit
        meta = {"resourceVersion": "999", **({"continue": str(end)} if end < COUNT else {})}
        items = ",".join(objects[start:end])
        return web.Response(text=f'{{"metadata":{json.dumps(meta)},"items":[{items}]}}')

    async with wire(answer) as made:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            START,
            made.client.server,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, said = await process.communicate()

    count, quiet, most = map(int, out.split())
    assert quiet == QUIET
    assert most < LIMIT, f"{most / 2**20:.0f} MiB"
    assert b"loud/" in said
    assert b"delete some" in said
    print(f"{count - quiet} of {COUNT - QUIET}, {quiet} of {QUIET}, {most / 2**20:.0f} MiB")
