"""Run a component as a process: flags, credentials, watches, queues, leadership, health, and a clean shutdown.

def set_up(process: Process) -> None:
    deployments = process.watch(MODEL_DEPLOYMENTS)
    queue = process.queue("mine", reconcile, of=deployments)
    deployments.subscribe(lambda key, obj: queue.add(key))

run(options, "kubefoundry-mine", set_up)
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from importlib.metadata import version

from prometheus_client import REGISTRY
from prometheus_client.registry import Collector

from kubefoundry_sdk._api import contract_version, names
from kubefoundry_sdk._api.build import commit
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster import credentials, logs
from kubefoundry_sdk._cluster.client import Client, behind
from kubefoundry_sdk._cluster.congestion import Congestion
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._cluster.reflector import SILENCE, Sink, reflect
from kubefoundry_sdk._cluster.repetition import Repetition
from kubefoundry_sdk._cluster.skipped import SKIPPED
from kubefoundry_sdk._runtime import buffers, health, metrics, problem_events, traces
from kubefoundry_sdk._runtime.leadership import Leadership
from kubefoundry_sdk._runtime.outage_clock import OutageClock
from kubefoundry_sdk._runtime.recorder import Recorder
from kubefoundry_sdk._runtime.resync import resync
from kubefoundry_sdk._runtime.start import CannotStart, api_server
from kubefoundry_sdk._runtime.store import Key, Store
from kubefoundry_sdk._runtime.supervision import Work, supervise
from kubefoundry_sdk._runtime.wait import sooner
from kubefoundry_sdk._runtime.workqueue import Reconcile, WorkQueue

log = logging.getLogger(__name__)


def own_namespace(options: argparse.Namespace) -> str:
    """Return the namespace of a process and of its Lease (contract §6)."""
    namespace: str | None = options.namespace or credentials.own_namespace(options.kubeconfig)
    return namespace or names.SYSTEM_NAMESPACE


def identity_of(options: argparse.Namespace) -> str:
    """Return the name of this replica, in its Lease, its Events and its spans."""
    identity: str | None = options.identity or os.environ.get("POD_UID")
    return identity or f"{socket.gethostname()}-{os.getpid()}"


def loop_time() -> float:
    """Return the seconds of the running event loop's clock."""
    return asyncio.get_running_loop().time()


class Process:
    """The running process of a component, to which its `set_up` adds watches and work."""

    def __init__(self, component: str, options: argparse.Namespace, client: Client) -> None:
        self.component = component
        metrics.BUILD.labels(component, version("kubefoundry-sdk"), commit(), contract_version.CURRENT).set(1)
        self.options = options
        self._congestion = Congestion()
        self._leadership = Leadership(
            component if options.leader_elect else None, elected=options.leader_elect
        )
        self.client = behind(client, self._leadership.fence, self._congestion, Repetition(loop_time))
        """The client of the component. It refuses writes (Fenced) while this replica does not lead."""
        self._unfenced = client
        self.namespace: str = own_namespace(options)
        self.identity: str = identity_of(options)
        self.recorder = Recorder(
            client, component=component, instance=self.identity, give_way=self._congestion.give_way
        )
        self.leading = self._leadership.leading
        """Set while this replica does the work: while the Lease is held, or from the start without election."""
        self.outage_clock = OutageClock(loop_time)
        """The clock for waits on other processes. It stops during an outage."""
        self._last_signs: dict[str, float] = {}
        self._stores: dict[str, Store] = {}
        self._conditions: list[health.Check] = []
        self._not_started: list[tuple[str, Work]] = [("events", self.recorder.run)]
        self._at_end: list[Callable[[], None]] = []
        self._group: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._start_problem: str | None = "the API server has not answered yet"

    @property
    def stores(self) -> list[Store]:
        """Return the stores of all kinds that are watched so far."""
        return list(self._stores.values())

    def watch(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        selector: Mapping[str, str] | None = None,
        managers: frozenset[str] = frozenset(),
        content_owners: bool = False,
        content_only: bool = False,
        trim: Callable[[Object], Object] | None = None,
        index: Callable[[Object], str | None] | None = None,
    ) -> Store:
        """Return a store that follows the kind. For `selector` see Client.list, for the rest Store."""
        store = Store(
            managers=managers,
            content_owners=content_owners,
            content_only=content_only,
            trim=trim,
            index=index,
        )
        self._stores[f"{kind.plural}{selector or ''}"] = store
        self.background(
            f"watch of {kind.plural}",
            lambda: self.follow(kind, store, store=store, namespace=namespace, selector=selector),
        )
        return store

    async def follow(
        self,
        kind: Kind,
        sink: Sink,
        *,
        store: Store | None = None,
        namespace: str | None = None,
        selector: Mapping[str, str] | None = None,
        refused: Callable[[], None] | None = None,
        failing: Callable[[Exception | None], None] | None = None,
    ) -> None:
        """Fill the sink until cancelled: the work of `watch`, for kinds that come and go.

        Args:
            kind: The kind.
            sink: Receives the objects.
            store: The store in which the sink keeps the objects; required if tenants create them.
            namespace: The namespace; None for all.
            selector: `labelSelector` and `fieldSelector` parameters.
            refused: See `reflect`, for optional kinds.
            failing: Called with each error, and with None at each sign of life.
        """
        # Prometheus sees no increase in the first value of a series.
        SKIPPED.labels(kind.kind)
        if store is not None:
            store.left_out = lambda obj: self._left_out(kind, obj)
        name = f"{kind.plural}{selector or ''}"
        loop = asyncio.get_running_loop()

        def alive() -> None:
            self._last_signs[name] = loop.time()
            self.outage_clock.sees(name)
            if failing:
                failing(None)

        def failed(error: Exception) -> None:
            self._last_signs[name] = loop.time()
            self.outage_clock.fails(name)
            if failing:
                failing(error)

        self._last_signs[name] = loop.time()
        try:
            await reflect(
                self.client,
                kind,
                sink,
                namespace=namespace,
                selector=selector,
                bounded=store,
                alive=alive,
                tried=failed,
                refused=refused,
            )
        finally:
            self._last_signs.pop(name, None)
            self.outage_clock.ends(name)

    def _left_out(self, kind: Kind, obj: Object) -> None:
        if self.leading.is_set():
            problem_events.left_out(self.recorder, self.component, kind, obj)

    def queue(self, label: str, reconcile: Reconcile, *, of: Store) -> WorkQueue:
        """Return a work queue whose workers run while this replica leads, once all watches of `set_up` are listed.

        `of` is the store whose objects are all reconciled from time to time, even without events (`resync`), and
        again after admission has changed a status.
        """

        def failed(key: Key, error: Exception) -> None:
            live = of.get(key)
            if live is not None and "kind" in live:
                problem_events.failed(self.recorder, self.component, live, error)

        async def complete(key: Key) -> float | None:
            if traces.are_exported() and (seen := of.get(key)) is not None:
                logs.read(seen)
            try:
                again = await reconcile(key)
            except ApiError as error:
                if error.conflict:
                    of.report_next(key)
                raise
            left = of.altered.left(key, loop_time())
            live = of.get(key) if left is not None else None
            if live is not None and "kind" in live:
                problem_events.altered(self.recorder, self.component, live, of.altered.text(key))
            return sooner(again, left)

        queue = WorkQueue(
            label,
            complete,
            room=self._congestion.room,
            pause=self._congestion.pause_after,
            failed=failed,
        )

        async def work() -> None:
            for store in self.stores:
                await store.synced.wait()
            await queue.run(self.options.workers)

        self.while_leading(f"queue {label}", work)
        self.while_leading(f"resync of {label}", lambda: resync(of.keys, queue.add))
        return queue

    def background(self, name: str, work: Work) -> asyncio.Task[None] | None:
        """Run the work in the background, and restart it from the beginning if it fails.

        Args:
            name: The name for logs and metrics.
            work: The work.

        Returns:
            The task, which can be cancelled; None before the process runs.
        """
        if self._group is None:
            self._not_started.append((name, work))
            return None
        task = self._group.create_task(supervise(name, work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def while_leading(self, name: str, work: Work) -> None:
        """Run the work while this replica leads: cancelled when it no longer does, and restarted later."""
        self.background(name, self._leadership.only_leading(work))

    def ready_when(self, check: health.Check) -> None:
        """Add a condition of `/readyz`."""
        self._conditions.append(check)

    def always_hold(self, lease: str) -> None:
        """Hold the Lease of that name even without election: it shows others that this component is alive."""
        self._leadership.lease = lease

    def at_end(self, clean_up: Callable[[], None]) -> None:
        """Call the function when `run` ends, also if the component could not start."""
        self._at_end.append(clean_up)

    def clean_up(self) -> None:
        """Call the functions of `at_end`. `run` does this. Call it if `set_up` fails and the program goes on."""
        while self._at_end:
            self._at_end.pop()()

    def export(self, collector: Collector) -> None:
        """Add the collector's metrics to `/metrics` until `run` ends."""
        REGISTRY.register(collector)
        self.at_end(lambda: REGISTRY.unregister(collector))

    async def run(self, stop: asyncio.Event, *, needs: str = names.API_VERSION) -> None:
        """Run until `stop` is set. `needs` is the API version without which the component cannot work.

        Waits for an API server that is not reachable, at the start and later. Raises CannotStart.
        """
        async with AsyncExitStack() as resources:
            resources.callback(self.clean_up)
            resources.push_async_callback(await self._serve())
            await self._work(stop, needs)

    async def _work(self, stop: asyncio.Event, needs: str) -> None:
        problem: CannotStart | None = None
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                ended = asyncio.ensure_future(stop.wait())
                server = asyncio.ensure_future(api_server(self.client, needs, self._waiting_for))
                await asyncio.wait([ended, server], return_when=asyncio.FIRST_COMPLETED)
                if server.done():
                    server.result()
                    self._start_problem = None
                    self.background("leadership", self._lead)
                    for name, work in self._not_started:
                        self.background(name, work)
                else:
                    server.cancel()
                await ended
                for task in list(self._running):
                    task.cancel()
        except* CannotStart as refused:
            # Raised below: early releases of Python 3.11 wrap what an except* clause raises in another group.
            problem = _first_error(refused)
        finally:
            self._group = None
        if problem is not None:
            raise problem

    def _waiting_for(self, reason: str) -> None:
        self._start_problem = reason

    async def _lead(self) -> None:
        await self._leadership.run(self._unfenced, namespace=self.namespace, identity=self.identity)

    async def _serve(self) -> Callable[[], Awaitable[None]]:
        try:
            return await health.serve(
                health_port=self.options.health_port,
                metrics_port=self.options.metrics_port,
                healthy=self._healthy,
                ready=self._ready,
            )
        except OSError as error:
            raise CannotStart(f"a port cannot be opened: {error}") from error

    def _healthy(self) -> str | None:
        now = asyncio.get_running_loop().time()
        silent = [name for name, sign in self._last_signs.items() if now - sign > 2 * SILENCE]
        return f"no events from the watch of {', '.join(silent)}" if silent else None

    def _ready(self) -> str | None:
        if self._start_problem:
            return self._start_problem
        if self._leadership.refused:
            return self._leadership.refused
        waiting = [name for name, store in self._stores.items() if not store.synced.is_set()]
        if waiting:
            return f"not listed yet: {', '.join(waiting)}"
        return next((problem for check in self._conditions if (problem := check())), None)


SetUp = Callable[[Process], Awaitable[None] | None]


def run(component: str, options: argparse.Namespace, set_up: SetUp, *, needs: str = names.API_VERSION) -> int:
    """Run the component until SIGTERM or SIGINT, and return the exit code.

    `needs` is the API version without which the component cannot work. The exit code is 1, with one line on stderr,
    if that API is missing, the credentials are refused or a port is taken.
    """
    logs.set_up(options.log_format, options.log_level)
    buffers.limit_tls_buffers()
    buffers.map_large_buffers()
    end_traces = traces.set_up(component, identity_of(options))
    code = 0
    try:
        asyncio.run(_main(component, options, set_up, needs))
    except (CannotStart, credentials.NoCredentials) as error:
        sys.stderr.write(f"{component}: {error}\n")
        code = 1
    finally:
        end_traces()
    return code


def _first_error(group: BaseExceptionGroup[CannotStart]) -> CannotStart:
    error = group.exceptions[0]
    return _first_error(error) if isinstance(error, BaseExceptionGroup) else error


async def _main(component: str, options: argparse.Namespace, set_up: SetUp, needs: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loaded = credentials.load(options.kubeconfig)
    async with Client(loaded, user_agent=component, qps=options.qps) as client:
        process = Process(component, options, client)
        preparation = set_up(process)
        if preparation is not None:
            await preparation
        # Objects from the start-up live forever. If they are frozen, a full collection between two writes takes 0.1
        # ms, not 25.
        gc.collect()
        gc.freeze()
        await process.run(stop, needs=needs)
