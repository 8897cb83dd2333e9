"""The webhooks at the end of the process: nodes still send reviews to a pod that they do not know to end."""

from __future__ import annotations

import asyncio
import ssl

import aiohttp
import pytest

from kubefoundry_core.main import prepared
from support.webhook_port import bound_listener, material

DELAY = 1.5


async def test_new_connections_are_served_until_the_delay_ends() -> None:
    presented = material()
    trust = ssl.create_default_context(cadata=presented.bundle.decode())
    async with bound_listener(delay=DELAY) as (listener, port, closing):
        await listener.present(presented)
        closing.cancel()
        loop = asyncio.get_running_loop()
        began = loop.time()

        statuses = [await status(port, trust)]
        while not closing.done():
            try:
                statuses.append(await status(port, trust))
            except aiohttp.ClientConnectionError:
                await asyncio.wait([closing])

    assert loop.time() - began >= DELAY
    assert len(statuses) > 1
    assert set(statuses) == {(200, "close")}


async def test_process_without_a_certificate_ends_at_once() -> None:
    async with bound_listener(delay=3600) as (_, _, closing):
        closing.cancel()

        done, _ = await asyncio.wait([closing], timeout=60)

    assert done


async def status(port: int, trust: ssl.SSLContext) -> tuple[int, str | None]:
    """Return status and `Connection` of a review on a connection of its own."""
    kind = {"group": "kubefoundry.ai", "kind": "ModelDeployment"}
    review = {"request": {"uid": "u", "kind": kind, "object": {"metadata": {"name": "m"}, "spec": {}}}}
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session,
        session.post(f"https://127.0.0.1:{port}/validate", json=review) as answer,
    ):
        return answer.status, answer.headers.get("Connection")


@pytest.mark.parametrize("text", ["3s", "-1s", "soon"])
def test_invalid_delay_ends_the_start(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        prepared(["--shutdown-delay", text])

    assert "--shutdown-delay" in capsys.readouterr().err
