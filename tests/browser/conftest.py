"""A real Chromium, and the page's server as users start it; all of a module in one event loop."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from support.namespaces import new_namespace

HERE = Path(__file__).parent


def fetched(script: str) -> str:
    """The path that a script of this folder prints. Skips with its words where what it needs is missing."""
    done = subprocess.run([HERE / script], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no browser: {' '.join(done.stderr.split())}")
    return done.stdout.strip()


@pytest.fixture(scope="session")
def axe() -> str:
    """axe-core's script."""
    return Path(fetched("axe")).read_text(encoding="utf-8")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    environment: dict[str, str | float | bool] = {**os.environ, "KUBEFOUNDRY_CHROMIUM_ROOT": fetched("root")}
    async with async_playwright() as playwright:
        made = await playwright.chromium.launch(
            executable_path=HERE / "chromium", args=["--disable-gpu"], env=environment
        )
        yield made
        await made.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(cluster: ControlPlane) -> AsyncIterator[Client]:
    """An administrator's client."""
    async with Client(credentials.from_kubeconfig(str(cluster.kubeconfig)), user_agent="test") as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def namespace(api: Client) -> str:
    """A namespace of the test's own."""
    return await new_namespace(api)
