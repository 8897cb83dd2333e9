"""The kubelet's port, from which the API server reads logs (kubelet 1.36: pkg/kubelet/server)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import web

from kubefoundry_nodes.kubelet import addresses
from kubefoundry_simulators.certificate import self_signed, tls

PORT: Final = 10250
"""The port that the API server uses for a Node without daemonEndpoints."""

NAME: Final = "[a-z0-9][-a-z0-9.]*"

KNOWN: Final = frozenset({"tailLines", "limitBytes", "follow", "previous"})

EVERY: Final = 0.1
"""Seconds until a followed file is read again."""


@asynccontextmanager
async def serving(logs: Path, runs: Callable[[str, str], bool]) -> AsyncIterator[None]:
    """Serve the logs on the node's address until the block ends. The arguments are those of `application`."""
    runner = web.AppRunner(application(logs, runs), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        context = tls(*self_signed(addresses.NODE))
        await web.TCPSite(runner, addresses.NODE, PORT, ssl_context=context).start()
        yield
    finally:
        await runner.cleanup()


def application(logs: Path, runs: Callable[[str, str], bool]) -> web.Application:
    """Return the server.

    Args:
        logs: The folder of logs (`Node.logs`).
        runs: Returns whether the pod of that namespace and name still exists, so that its log may grow.
    """

    async def log(request: web.Request) -> web.StreamResponse:
        namespace, pod, container = (request.match_info[key] for key in ("namespace", "pod", "container"))
        if unknown := request.query.keys() - KNOWN:
            return web.Response(status=400, text=f"not simulated: {', '.join(sorted(unknown))}")
        back = 2 if request.query.get("previous") == "true" else 1
        files = files_of(logs, namespace, pod, container)
        if len(files) < back:
            which = "previous terminated container" if back == 2 else "container"
            return web.Response(status=400, text=f'{which} "{container}" in pod "{pod}" not found')
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        content = files[-back].read_bytes()
        await response.write(
            selected(content, request.query.get("tailLines"), request.query.get("limitBytes"))
        )
        while request.query.get("follow") == "true":
            is_last = not runs(namespace, pod) or len(files_of(logs, namespace, pod, container)) > len(files)
            more = files[-back].read_bytes()
            await response.write(more[len(content) :])
            content = more
            if is_last:
                break
            await asyncio.sleep(EVERY)
        return response

    made = web.Application()
    place = f"{{namespace:{NAME}}}/{{pod:{NAME}}}/{{container:{NAME}}}"
    made.router.add_get(f"/containerLogs/{place}", log)
    return made


def files_of(logs: Path, namespace: str, pod: str, container: str) -> list[Path]:
    """Return the files of the container's runs in the newest pod of that name, the last run at the end."""
    pods = sorted(logs.glob(f"{namespace}_{pod}_*"), key=lambda path: path.stat().st_ctime_ns)
    return sorted((pods[-1] / container).glob("*.log"), key=lambda path: int(path.stem)) if pods else []


def selected(content: bytes, lines: str | None, most: str | None) -> bytes:
    """Return the last lines, and of these the first bytes, as the kubelet does."""
    if lines is not None:
        whole = content.splitlines(keepends=True)
        content = b"".join(whole[max(0, len(whole) - int(lines)) :])
    return content if most is None else content[: int(most)]
