"""Components inside an operator that is written with kopf (the extra `kopf`).

    import kubefoundry_sdk.kopf

    kubefoundry_sdk.kopf.serve(provider)

They run in kopf's event loop, with their own clients and watches. They use none of kopf's handlers, finalizers,
annotations and posted Events, because those break the contract (docs/kopf.md). Several components may run in one
operator.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial
from itertools import count
from typing import Any, Final

import kopf

from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.embedding import Settings
from kubefoundry_sdk._provider.run import prepared, set_up
from kubefoundry_sdk._runtime import health
from kubefoundry_sdk._runtime.buffers import limit_tls_buffers
from kubefoundry_sdk._runtime.process import Process, SetUp
from kubefoundry_sdk._runtime.supervision import supervise

__all__ = ["component", "login", "run", "serve"]

log = logging.getLogger(__name__)

_numbers: Final = count(1)
"""A handler of kopf needs an id of its own."""


def serve(
    provider: Provider | Callable[[], Provider],
    *,
    registry: kopf.OperatorRegistry | None = None,
    settings: Settings | None = None,
) -> None:
    """Add handlers to a registry (kopf's default one): the provider starts and stops with the operator.

    Args:
        provider: The provider, or a function that creates it when the operator starts. A failure is logged and
            retried with back-off; it does not stop the operator.
        registry: The registry; None means kopf's default one.
        settings: The provider's settings; None means those of `Settings()`, without ports.
    """

    async def work(stop: asyncio.Event) -> None:
        built = provider() if callable(provider) else provider
        options = argparse.Namespace(**asdict(settings or Settings()), qps=0.0)
        await _run(
            f"kubefoundry-provider-{built.name}", lambda: (options, partial(set_up, provider=built)), stop
        )

    _attach("provider", work, registry)


def run(
    name: str,
    build: Callable[[argparse.Namespace], Provider],
    add_arguments: Callable[[argparse.ArgumentParser], None] | None = None,
    *,
    registry: kopf.OperatorRegistry | None = None,
) -> None:
    """Add the provider to a registry, with the flags of its process, which come from the environment (contract §6).

    Args:
        name: As for `kubefoundry_sdk.run`, like the next two.
        build: Returns the provider for the flags.
        add_arguments: Adds the provider's own flags.
        registry: The registry; None means kopf's default one.
    """
    component(
        f"kubefoundry-provider-{name}", lambda: prepared(name, build, add_arguments, []), registry=registry
    )


def component(
    program: str,
    prepare: Callable[[], tuple[argparse.Namespace, SetUp]],
    *,
    registry: kopf.OperatorRegistry | None = None,
) -> None:
    """Add a component to a registry: it starts and stops with the operator.

    Components with the same ports share them (`KUBEFOUNDRY_HEALTH_PORT`, `KUBEFOUNDRY_METRICS_PORT`).

    Args:
        program: The name of the component's process.
        prepare: Returns the flags and the set-up of the process. Called before each start.
        registry: The registry; None means kopf's default one.
    """
    limit_tls_buffers()
    _attach(program, partial(_run, program, prepare), registry)
    kopf.on.startup(registry=registry, id="kubefoundry")(_without_scanning)
    # Each component logs in alike, and kopf calls handlers with one id once.
    kopf.on.login(registry=registry, id="kubefoundry")(login)


async def _run(
    program: str, prepare: Callable[[], tuple[argparse.Namespace, SetUp]], stop: asyncio.Event
) -> None:
    """Run a component from one start to its end. `/readyz` reports a failure until the next start."""
    try:
        options, connect = prepare()
        loaded = credentials.load(options.kubeconfig)
        async with Client(loaded, user_agent=program, qps=options.qps) as client:
            process = Process(program, options, client)
            try:
                preparation = connect(process)
                if preparation is not None:
                    await preparation
            except BaseException:
                process.clean_up()
                raise
            health.report_absent(program, None)
            await process.run(stop)
    except Exception as error:
        health.report_absent(program, str(error))
        raise


async def _without_scanning(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Do not watch CRDs: the component's account may not, and the component has no handlers for resources."""
    settings.scanning.disabled = True


def _attach(
    name: str, work: Callable[[asyncio.Event], Awaitable[None]], registry: kopf.OperatorRegistry | None
) -> None:
    """Run the work from kopf's start to its end. A failure is logged, and the work restarted."""
    stop: asyncio.Event | None = None
    task: asyncio.Task[None] | None = None

    async def start(**_: Any) -> None:
        nonlocal stop, task
        ends = stop = asyncio.Event()
        task = asyncio.create_task(supervise(name, lambda: work(ends)))

    async def end(**_: Any) -> None:
        if stop is None or task is None:
            return
        stop.set()
        await asyncio.wait([task], timeout=ENDS)
        task.cancel()

    handler_id = f"{name}-{next(_numbers)}"
    kopf.on.startup(registry=registry, id=handler_id)(start)
    kopf.on.cleanup(registry=registry, id=handler_id)(end)


def login(**context: Any) -> kopf.ConnectionInfo | None:
    """Log kopf in as the provider does, with a pod's ServiceAccount or else the kubeconfig, for `kopf.on.login()`.

    Only needed if the ServiceAccount's files are elsewhere (KUBEFOUNDRY_SERVICE_ACCOUNT_DIR, contract §6), as they
    are while the conformance kit runs it.
    """
    if not credentials.inside(None):
        return kopf.login_with_kubeconfig(**context)
    folder = credentials.service_account_dir()
    token = (folder / "token").read_text(encoding="utf-8").strip()
    return kopf.ConnectionInfo(
        server=credentials.server_of_pods(), ca_path=folder / "ca.crt", scheme="Bearer", token=token
    )


ENDS = 5.0
"""Seconds that a component has to shut down (contract §6)."""
