"""A component as a process: flags, credentials, watches, queues, leadership, health, and a clean end.

def set_up(process: Process) -> None:
    deployments = process.watch(MODEL_DEPLOYMENTS)
    queue = process.queue("mine", reconcile)
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
from asyncio import sslproto
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

from aiohttp import web

from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.cluster import credentials
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.cluster.reflector import SILENCE, Sink, reflect
from kubefoundry_sdk.runtime import health, logs
from kubefoundry_sdk.runtime.lease import Holder, LeaseLost
from kubefoundry_sdk.runtime.recorder import Recorder
from kubefoundry_sdk.runtime.store import Store
from kubefoundry_sdk.runtime.workqueue import Reconcile, WorkQueue

log = logging.getLogger(__name__)

TLS_READ: Final = 16 * 1024
"""Bytes of the buffer that each TLS connection holds and each read allocates: the longest record. asyncio's
256 KiB cost 40 MB for the 60 connections that a busy API server opens to a webhook, and kept them afterwards."""


class CannotStart(Exception):
    """One readable line: what is missing and what to do."""


class Process:
    """What a component's `set_up` gets to build on."""

    def __init__(self, component: str, options: argparse.Namespace, client: Client) -> None:
        self.component = component
        self.options = options
        self.client = client
        self.namespace: str = options.namespace
        self.identity: str = (
            options.identity or os.environ.get("POD_UID") or f"{socket.gethostname()}-{os.getpid()}"
        )
        self.recorder = Recorder(client, component=component, instance=self.identity)
        self.leading = asyncio.Event()
        """Set once this replica does the work: after the Lease is held, or at once without election."""
        self._signs: dict[str, float] = {}
        self._stores: dict[str, Store] = {}
        self._conditions: list[health.Check] = []
        self._waiting: list[Coroutine[Any, Any, None]] = [self.recorder.run()]
        self._group: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._lease = component if options.leader_elect else None

    def watch(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        selector: Mapping[str, str] | None = None,
        managers: frozenset[str] = frozenset(),
        trim: Callable[[Object], Object] | None = None,
        index: Callable[[Object], str | None] | None = None,
    ) -> Store:
        """A store that follows the kind; `selector`: see Client.list, the rest: see Store."""
        store = Store(managers=managers, trim=trim, index=index)
        self._stores[f"{kind.plural}{selector or ''}"] = store
        self.background(self.follow(kind, store, namespace=namespace, selector=selector))
        return store

    async def follow(
        self,
        kind: Kind,
        sink: Sink,
        *,
        namespace: str | None = None,
        selector: Mapping[str, str] | None = None,
        refused: Callable[[], None] | None = None,
    ) -> None:
        """Fills the sink until cancelled: what `watch` runs, for kinds that come and go.

        refused: see `reflect`, for kinds that can be done without.
        """
        name = f"{kind.plural}{selector or ''}"
        loop = asyncio.get_running_loop()

        def alive() -> None:
            self._signs[name] = loop.time()

        alive()
        try:
            await reflect(
                self.client,
                kind,
                sink,
                namespace=namespace,
                selector=selector,
                alive=alive,
                tried=alive,
                refused=refused,
            )
        finally:
            self._signs.pop(name, None)

    def queue(self, label: str, reconcile: Reconcile) -> WorkQueue:
        """A work queue whose workers begin when this replica leads and all watches of `set_up` are filled."""
        queue = WorkQueue(label, reconcile)

        async def work() -> None:
            await self.leading.wait()
            for store in list(self._stores.values()):
                await store.synced.wait()
            await queue.run(self.options.workers)

        self.background(work())
        return queue

    def background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        """Runs beside everything else; its failure ends the process. None before the process runs."""
        if self._group is None:
            self._waiting.append(work)
            return None
        task = self._group.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def ready_when(self, check: health.Check) -> None:
        """One more condition of `/readyz`."""
        self._conditions.append(check)

    def always_hold(self, lease: str) -> None:
        """Holds the Lease of that name even without election: others read from it that this component is there."""
        self._lease = lease

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set. Raises LeaseLost, or what a background task raised."""
        runners = await self._serve()
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for work in (*self._waiting, self._lead()):
                    self.background(work)
                await stop.wait()
                for task in list(self._running):
                    task.cancel()
        finally:
            self._group = None
            for runner in runners:
                await runner.cleanup()

    def close(self) -> None:
        """Drops what `set_up` asked to run and that never came to run, because the start failed."""
        for work in self._waiting:
            work.close()

    async def _lead(self) -> None:
        if self._lease is None:
            self.leading.set()
            return
        holder = Holder(self.client, name=self._lease, namespace=self.namespace, identity=self.identity)
        if not self.options.leader_elect:
            self.leading.set()
        await holder.take()
        self.leading.set()
        await holder.keep()

    async def _serve(self) -> list[web.AppRunner]:
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
        silent = [name for name, sign in self._signs.items() if now - sign > 2 * SILENCE]
        return f"no sign of life from the watch of {', '.join(silent)}" if silent else None

    def _ready(self) -> str | None:
        waiting = [name for name, store in self._stores.items() if not store.synced.is_set()]
        if waiting:
            return f"not listed yet: {', '.join(waiting)}"
        return next((problem for check in self._conditions if (problem := check())), None)


SetUp = Callable[[Process], Awaitable[None] | None]


def run(component: str, options: argparse.Namespace, set_up: SetUp, *, needs: str = names.API_VERSION) -> int:
    """Runs the component until SIGTERM or SIGINT; the process's exit code.

    needs: the API version without which the component can do nothing.
    1 with one line on stderr: unreachable server, missing API group, refused credentials, taken port, lost Lease.
    """
    logs.set_up(options.log_format)
    sslproto.SSLProtocol.max_size = TLS_READ
    code = 0
    try:
        asyncio.run(_main(component, options, set_up, needs))
    except* (CannotStart, LeaseLost, credentials.NoCredentials) as group:
        sys.stderr.write(f"{component}: {_first(group)}\n")
        code = 1
    return code


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    error: BaseException = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


async def _main(component: str, options: argparse.Namespace, set_up: SetUp, needs: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    who = credentials.load(options.kubeconfig)
    async with Client(who, user_agent=component, qps=options.qps) as client:
        await _check(client, who.server, needs)
        process = Process(component, options, client)
        try:
            made = set_up(process)
            if made is not None:
                await made
            # What the start has made stays: without it a full collection takes 0.1 ms, not 25 between two writes.
            gc.collect()
            gc.freeze()
            await process.run(stop)
        finally:
            process.close()


async def _check(client: Client, server: str, needs: str) -> None:
    """One request that tells apart: no server, not let in, resources not installed."""
    try:
        await client.read(f"/apis/{needs}")
    except Unreachable as error:
        raise CannotStart(f"the API server {server} does not answer: {error}") from error
    except ApiError as error:
        if error.not_found:
            raise CannotStart(
                f"the API server does not serve {needs}: install KubeFoundry's CRDs first"
            ) from error
        raise CannotStart(f"the API server refuses us: {error.message or error}") from error
