"""The API server, core, the selector, two providers and their operators, on one event loop with a simulated clock."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import logging
import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import yaml

from kubefoundry_core.controller import Controller as Core
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.crd import model_deployments, provider_configs
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster import congestion
from kubefoundry_sdk._cluster.client import Client, over
from kubefoundry_sdk._provider import run as provider_run
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._runtime import lease, options, wall_clock
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk.testing._server.transport import CREDENTIALS
from kubefoundry_sdk.testing._simulated import SimulatedLoop
from kubefoundry_selector import main as selector_main
from simulation.link import FaultyTransport, Link
from simulation.operators import UpstreamOperator
from simulation.server import SimulatedServer

CRDS: Final = Path(__file__).resolve().parents[2] / "dev" / "simulators" / "crds"
BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE: Final = "default"
CORE: Final = "kubefoundry-core"
SELECTOR: Final = "kubefoundry-selector"

FLAGS: Final = (
    *("--health-port=0", "--metrics-port=0", "--identity=simulated", f"--namespace={names.SYSTEM_NAMESPACE}"),
    *("--finalizer-timeout=60s", "--stale-after=120s"),
)
"""Flags of all components. The time-outs are shorter than the defaults, so that histories reach them."""

FINALIZER_FLAGS: Final = FLAGS[:5]
SELECTOR_FLAGS: Final = FLAGS[:4]

RESTARTED: Final = 2.0
"""Seconds until a process that has ended is started again."""


def component(provider: str) -> str:
    """Return the name of a provider's process."""
    return f"kubefoundry-provider-{provider}"


class World:
    """A cluster. Create it inside of a SimulatedLoop, under `determined`.

    Args:
        providers: The names of the two providers.
        seed: Decides on latencies.
    """

    def __init__(self, providers: tuple[str, str], seed: int) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.loop = loop
        self.providers = providers
        self.links: dict[str, Link] = {}
        self.ended: list[str] = []
        """Components that ended by themselves, with the reason."""
        self.disturbed: dict[str, float] = {}
        """When a component was last crashed or restarted."""
        self.healthy: dict[str, float] = {}
        """When a provider last reported that it is ready."""
        self.rules: dict[str, list[Object]] = {}
        """The last selection rules of each provider."""
        self._chance = random.Random(seed)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.server = SimulatedServer(self.now, time=loop.time)
        self.built: dict[str, Provider] = {}
        self.crds: dict[str, Object] = {name: _crd(name) for name in providers}
        for crd in (model_deployments(), provider_configs(), *self.crds.values()):
            self.server.install(crd)
        for namespace in (NAMESPACE, names.SYSTEM_NAMESPACE):
            self.server.create_namespace(namespace)
        self.operators = {name: UpstreamOperator(self.server, name, self.now) for name in providers}

    @property
    def components(self) -> list[str]:
        """Return the names of the processes."""
        return [CORE, SELECTOR, *(component(name) for name in self.providers)]

    def now(self) -> datetime:
        """Return the simulated time of day."""
        return BEGIN + timedelta(seconds=self.loop.time())

    async def start(self) -> None:
        """Start all components, and let them register."""
        for name in self.components:
            self.run(name)
        await self.loop.advance(5)

    def forget(self) -> None:
        """Forget what the operators' pods have run."""
        for operator in self.operators.values():
            operator.runs.clear()

    def reseed(self, seed: int) -> None:
        """Let all that is random depend on this seed from now on."""
        self._chance.seed(seed)
        random.seed(seed)

    def run(self, name: str) -> None:
        """Start a component that does not run."""
        link = Link(self._chance, self.loop.time, lambda: self.crash(name))
        self.disturbed[name] = self.loop.time()
        self.links[name] = link
        with wall_clock.set_to(self.now):
            task = self.loop.create_task(self._run(name, link))
        self._tasks[name] = task
        task.add_done_callback(lambda done: self._done(name, link, done))

    def crash(self, name: str, seconds: float = RESTARTED) -> None:
        """End a component as by SIGKILL: nothing that it does then arrives. Start it again after some seconds."""
        link = self.links[name]
        if link.alive:
            link.alive = False
            self._tasks[name].cancel()
            self.loop.call_later(seconds, self.run, name)

    async def end(self) -> None:
        """End all components, so that nothing is left in the event loop."""
        for name, link in self.links.items():
            link.alive = False
            self._tasks[name].cancel()
        await self.loop.advance(5)

    def calm_since(self, name: str) -> float:
        """Return when the last disturbance of a component ended."""
        link = self.links[name]
        if not link.alive or link.failing:
            return self.loop.time()
        return max(self.disturbed[name], link.disturbed_until)

    def stop_faults(self) -> None:
        """End all faults, and all policies of others."""
        self.server.policies.clear()
        for link in self.links.values():
            link.heal()
        for operator in self.operators.values():
            operator.down_until = -1.0

    def _done(self, name: str, link: Link, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and link.alive:
            link.alive = False
            self.ended.append(f"{name} ended: {task.exception()!r}")

    async def _run(self, name: str, link: Link) -> None:
        transport = FaultyTransport(self.server, link, user_agent=name)
        async with over(Client(CREDENTIALS, user_agent=name), transport) as client:
            with options.without_variables():
                parsed, set_up = self._prepared(name)
            process = Process(name, parsed, client)
            set_up(process)
            await process.run(asyncio.Event())

    def _prepared(self, name: str) -> tuple[argparse.Namespace, Callable[[Process], Any]]:
        if name == CORE:
            parser = options.parser(CORE, "")
            options.finalizer_timeout(parser)
            options.heartbeat_timeout(parser)
            # Its webhooks are pure functions, which the users' requests call.
            return parser.parse_args(FINALIZER_FLAGS), Core
        if name == SELECTOR:
            return selector_main.prepared(None, SELECTOR_FLAGS)
        provider = name.removeprefix(component(""))
        module = importlib.import_module(f"kubefoundry_{provider}.provider")

        def build(parsed: argparse.Namespace) -> Provider:
            self.built[provider] = module.build(parsed)
            return self.built[provider]

        return provider_run.prepared(provider, build, module.add_arguments, FLAGS)


def _crd(name: str) -> Object:
    crd: Object = yaml.safe_load((CRDS / f"{name}.yaml").read_text(encoding="utf-8"))
    return crd


@contextmanager
def determined(seed: int, clock: Callable[[], float]) -> Iterator[None]:
    """Let uids, spread delays and monotonic clocks depend on the seed and the simulated clock only."""
    chance = random.Random(seed)
    random.seed(seed)
    replaced: list[tuple[ModuleType, str, Any]] = [
        (uuid, "uuid4", lambda: uuid.UUID(int=chance.getrandbits(128), version=4)),
        (congestion, "time", SimpleNamespace(monotonic=clock)),
        (lease, "now", clock),
    ]
    originals = [(module, name, getattr(module, name)) for module, name, _ in replaced]
    for module, name, value in replaced:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in originals:
            setattr(module, name, value)


class InternalErrors(logging.Handler):
    """Collects internal errors that components log."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take a log record."""
        error = record.exc_info[1] if record.exc_info else None
        self.texts.append(f"{record.getMessage()}: {error!r}" if error else record.getMessage())
