"""Probes of a container, with the kubelet's rules (kubelet 1.36: pkg/kubelet/prober; pkg/probe)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

Exec = Callable[[list[str]], Awaitable[int]]
"""Runs a command in the container, and returns its exit code."""


@dataclass(frozen=True, slots=True)
class Prober:
    """Probes of a container.

    Attributes:
        container: The container of the pod's spec.
        address: The address of the pod.
        execute: Runs a command in the container.
        began: The start of the container, in seconds of the loop's clock.
    """

    container: Mapping[str, Any]
    address: str
    execute: Exec
    began: float

    async def has_started(self) -> bool:
        """Wait for the startup probe, and return whether it succeeded; True without a probe."""
        if probe := self.container.get("startupProbe"):
            async for succeeded in self._results(probe):
                return succeeded
        return True

    async def follow_readiness(self, changed: Callable[[bool], None]) -> None:
        """Report every change of readiness, forever. Without a probe, report True once."""
        probe = self.container.get("readinessProbe")
        if probe is None:
            changed(True)
            return
        ready = False
        async for succeeded in self._results(probe):
            if succeeded != ready:
                ready = succeeded
                changed(ready)

    async def until_dead(self) -> None:
        """Wait until the liveness probe has failed too often; forever without a probe."""
        probe = self.container.get("livenessProbe")
        if probe is None:
            await asyncio.get_running_loop().create_future()
            return
        async for succeeded in self._results(probe):
            if not succeeded:
                return

    async def _results(self, probe: Mapping[str, Any]) -> AsyncIterator[bool]:
        """Yield a result each time that it has reached its threshold of consecutive results."""
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(max(0.0, self.began + probe.get("initialDelaySeconds", 0) - clock()))
        thresholds = {True: probe.get("successThreshold", 1), False: probe.get("failureThreshold", 3)}
        last, times = False, 0
        while True:
            succeeded = await self._succeeds(probe)
            last, times = succeeded, times + 1 if succeeded == last else 1
            if times >= thresholds[succeeded]:
                yield succeeded
            await asyncio.sleep(probe.get("periodSeconds", 10))

    async def _succeeds(self, probe: Mapping[str, Any]) -> bool:
        try:
            async with asyncio.timeout(probe.get("timeoutSeconds", 1)):
                if command := probe.get("exec"):
                    return await self.execute(list(command["command"])) == 0
                if http := probe.get("httpGet"):
                    return await self._answers(http)
                if tcp := probe.get("tcpSocket"):
                    _, writer = await asyncio.open_connection(
                        tcp.get("host") or self.address, self._port(tcp["port"])
                    )
                    writer.close()
                    return True
        except (TimeoutError, OSError, aiohttp.ClientError):
            return False
        raise NotImplementedError(f"not supported here: {', '.join(probe)}")

    async def _answers(self, http: Mapping[str, Any]) -> bool:
        """Check for a status from 200 to 399, without checking certificates or following redirections."""
        scheme = http.get("scheme", "HTTP").lower()
        host = http.get("host") or self.address
        url = f"{scheme}://{host}:{self._port(http['port'])}/{http.get('path', '/').lstrip('/')}"
        headers = {header["name"]: header["value"] for header in http.get("httpHeaders") or ()}
        async with (
            aiohttp.ClientSession(headers={"User-Agent": "kube-probe/1.36", **headers}) as session,
            session.get(url, allow_redirects=False, ssl=False) as response,
        ):
            return 200 <= response.status < 400

    def _port(self, port: int | str) -> int:
        if isinstance(port, int):
            return port
        ports = self.container.get("ports") or ()
        numbers = {entry.get("name"): entry["containerPort"] for entry in ports}
        return int(numbers[port])


async def watched(prober: Prober, started: Callable[[], None], ready: Callable[[bool], None]) -> str:
    """Run the probes until one fails, and return its name. The caller cancels this if the container ends."""
    if not await prober.has_started():
        return "startup"
    started()
    readiness = asyncio.create_task(prober.follow_readiness(ready))
    try:
        await prober.until_dead()
    finally:
        readiness.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await readiness
    return "liveness"
