"""A component in a kopf operator that fails: `/readyz` reports it, and it starts again as if for the first time."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Gauge

from kubefoundry_local.ports import free_port
from kubefoundry_sdk._runtime import health, options
from kubefoundry_sdk._runtime.process import Process, SetUp
from kubefoundry_sdk.kopf import _run
from support.waiting import SECONDS

NOWHERE = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""


async def test_failed_component_is_reported_and_starts_again(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(NOWHERE)
    port = free_port()
    gauge = Gauge("kubefoundry_test_of_kopf", "A metric of the component.", registry=CollectorRegistry())
    attempts: list[Process] = []

    def prepare() -> tuple[argparse.Namespace, SetUp]:
        flags = [f"--kubeconfig={tmp_path / 'config'}", f"--health-port={port}", "--metrics-port=0"]
        return options.parser("part", "").parse_args(flags), set_up

    def set_up(process: Process) -> None:
        attempts.append(process)
        process.export(gauge)
        if len(attempts) == 1:
            raise OSError("no socket")

    async def ready() -> str:
        url = f"http://127.0.0.1:{port}/readyz"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return await response.text()

    stop = asyncio.Event()
    leave = await health.serve(health_port=port, metrics_port=0, healthy=lambda: None, ready=lambda: None)
    with pytest.raises(OSError, match="no socket"):
        await _run("part", prepare, stop)
    failed = await ready()
    running = asyncio.create_task(_run("part", prepare, stop))
    async with asyncio.timeout(SECONDS):
        while "does not run" in (again := await ready()):
            pass
    stop.set()
    await running
    await leave()

    assert failed == "part does not run, and is started again soon: no socket\n"
    assert again
    assert len(attempts) == 2
