"""Several components of one program: they share the ports of `/readyz` and `/metrics`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from kubefoundry_local.ports import free_port
from kubefoundry_sdk._runtime import health


async def get(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
        return response.status, await response.text()


async def test_shared_port_names_the_first_problem_of_any() -> None:
    port = free_port()
    problems: dict[str, str | None] = {"a": None, "b": "b has no CRD"}

    async def join(name: str) -> Callable[[], Awaitable[None]]:
        return await health.serve(
            health_port=port, metrics_port=0, healthy=lambda: None, ready=lambda: problems[name]
        )

    leave = [await join(name) for name in problems]
    with_problem = await get(port, "/readyz")
    problems["b"] = None
    without = await get(port, "/readyz")
    alive = await get(port, "/healthz")
    no_metrics = await get(port, "/metrics")
    await leave[0]()
    after_the_first = await get(port, "/readyz")
    await leave[1]()

    assert with_problem == (503, "b has no CRD\n")
    assert without == alive == after_the_first == (200, "ok\n")
    assert no_metrics[0] == 404
    with pytest.raises(aiohttp.ClientConnectorError):
        await get(port, "/readyz")


async def test_left_port_can_be_opened_again() -> None:
    port = free_port()

    for _ in range(2):
        leave = await health.serve(
            health_port=port, metrics_port=port, healthy=lambda: None, ready=lambda: "waits"
        )
        assert await get(port, "/readyz") == (503, "waits\n")
        assert (await get(port, "/metrics"))[0] == 200
        await leave()
