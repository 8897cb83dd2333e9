"""`/healthz`, `/readyz` and `/metrics` of a process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from kubefoundry_sdk._runtime.listening import bind

Check = Callable[[], str | None]
"""Returns None if all is well, else the problem in one line."""

_ports: Final[dict[int, _Port]] = {}
"""The open ports of this program. Several components of one program share a port (`kubefoundry_sdk.kopf`)."""

_absent: Final[dict[str, str]] = {}
"""Components of this program that do not run at the moment, with the reason."""


def report_absent(component: str, problem: str | None) -> None:
    """Let `/readyz` on all ports of this program report a component that does not run, until `problem` is None."""
    if problem is None:
        _absent.pop(component, None)
    else:
        _absent[component] = f"{component} does not run, and is started again soon: {problem}"


async def serve(
    *, health_port: int, metrics_port: int, healthy: Check, ready: Check
) -> Callable[[], Awaitable[None]]:
    """Serve on all addresses until the returned function is called; port 0 disables a listener.

    A port that another component of this program serves is shared. `/healthz` and `/readyz` then name the first
    problem of any component, and `/metrics` has the metrics of all.

    Raises:
        OSError: A port is taken by another program.
    """
    joined: list[tuple[_Port, _Component]] = []

    async def leave() -> None:
        for port, component in joined:
            await port.leave(component)

    try:
        for number in dict.fromkeys(filter(None, (health_port, metrics_port))):
            port = _ports.get(number) or _Port(number)
            component = _Component(
                (healthy, ready) if number == health_port else None, number == metrics_port
            )
            joined.append((port, component))
            await port.join(component)
    except BaseException:
        await leave()
        raise
    return leave


@dataclass(frozen=True, slots=True, eq=False)
class _Component:
    """What a component serves on a port: its checks (healthy, ready), its metrics, or both."""

    checks: tuple[Check, Check] | None
    metrics: bool


class _Port:
    """A port of `_ports`, from its first component to its last."""

    def __init__(self, number: int) -> None:
        self._components: list[_Component] = []
        self._number = number
        try:
            self._bound = bind(number)
        except OSError as error:
            raise OSError(error.errno, f"port {number}: {error.strerror}") from error
        app = web.Application()
        app.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._metrics),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None)
        _ports[number] = self

    async def join(self, component: _Component) -> None:
        self._components.append(component)
        if len(self._components) == 1:
            await self._runner.setup()
            await web.SockSite(self._runner, self._bound).start()

    async def leave(self, component: _Component) -> None:
        self._components.remove(component)
        if not self._components:
            del _ports[self._number]
            try:
                await self._runner.cleanup()
            finally:
                self._bound.close()

    async def _healthz(self, _: web.Request) -> web.Response:
        return _answer([component.checks[0] for component in self._components if component.checks])

    async def _readyz(self, _: web.Request) -> web.Response:
        checks = [component.checks[1] for component in self._components if component.checks]
        return _answer([*checks, lambda: next(iter(_absent.values()), None)] if checks else [])

    async def _metrics(self, _: web.Request) -> web.Response:
        if not any(component.metrics for component in self._components):
            raise web.HTTPNotFound
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _answer(checks: Sequence[Check]) -> web.Response:
    if not checks:
        raise web.HTTPNotFound
    problem = next((problem for check in checks if (problem := check())), None)
    return web.Response(text=(problem or "ok") + "\n", status=503 if problem else 200)
