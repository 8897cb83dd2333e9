"""The page of one user, with a client that is signed in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import ClientSession, CookieJar
from aiohttp.test_utils import TestServer

from kubefoundry_dashboard.access import Local
from kubefoundry_dashboard.application import make
from kubefoundry_sdk._cluster.credentials import from_kubeconfig


class LocalPage(NamedTuple):
    """A page that is served.

    Attributes:
        client: A client that keeps cookies and is signed in.
        base: The address of the page.
        access: The access of its user.
    """

    client: ClientSession
    base: str
    access: Local


@asynccontextmanager
async def local_page(kubeconfig: Path, **how: Any) -> AsyncIterator[LocalPage]:
    """Serve the page of the namespace `models`. `how` are arguments of `make`."""
    access = Local(from_kubeconfig(str(kubeconfig), None), "models", 1)
    async with (
        TestServer(make(access, **how)) as server,
        ClientSession(cookie_jar=CookieJar(unsafe=True)) as client,
    ):
        base = f"http://127.0.0.1:{server.port}"
        async with client.get(f"{base}/?code={access.code}") as page:
            await page.read()
        yield LocalPage(client, base, access)
