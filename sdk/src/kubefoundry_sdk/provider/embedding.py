"""`serve`: a provider inside a program that somebody already has, on any event loop of asyncio.

No flags, signal handlers, log set-up or ports of its own; `run` is the provider as a process.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import asdict, dataclass

from kubefoundry_sdk.api.names import SYSTEM_NAMESPACE
from kubefoundry_sdk.cluster import credentials
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.provider.contract import Provider
from kubefoundry_sdk.provider.health.staleness import THRESHOLD
from kubefoundry_sdk.provider.run import set_up
from kubefoundry_sdk.runtime.options import FINALIZER_TIMEOUT, HEARTBEAT_TIMEOUT
from kubefoundry_sdk.runtime.process import Process
from kubefoundry_sdk.runtime.start import CannotStart


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What flags say of a provider that is a process (contract §6); seconds where a time is meant.

    leader_elect: whether to reconcile only while holding the Lease `kubefoundry-provider-NAME`: needed where the
        program runs more than once.
    health_port, metrics_port: 0 for none, because the program has its own.
    """

    namespace: str = SYSTEM_NAMESPACE
    leader_elect: bool = False
    identity: str | None = None
    workers: int = 8
    kubeconfig: str | None = None
    health_port: int = 0
    metrics_port: int = 0
    finalizer_timeout: float = FINALIZER_TIMEOUT
    heartbeat_timeout: float = HEARTBEAT_TIMEOUT
    stale_after: float = THRESHOLD
    verify_endpoint: str = "false"


def connect(provider: Provider, settings: Settings | None = None) -> Client:
    """A client for `serve`, to be entered with `async with`: the ServiceAccount's, elsewhere as kubectl finds it.

    Raises NoCredentials with one line that says what to do.
    """
    who = credentials.load((settings or Settings()).kubeconfig)
    return Client(who, user_agent=f"kubefoundry-provider-{provider.name}")


async def serve(
    provider: Provider, client: Client, stop: asyncio.Event, settings: Settings | None = None
) -> None:
    """Registers the provider and reconciles until `stop` is set or the task is cancelled; nothing is left running.

    An API server that is not there is waited for. Raises CannotStart where it says that waiting is no use: CRDs that
    are not installed, a refused token.
    """
    options = argparse.Namespace(**asdict(settings or Settings()))
    process = Process(f"kubefoundry-provider-{provider.name}", options, client)
    set_up(process, provider)
    try:
        await process.run(stop)
    except* CannotStart as group:
        raise _first(group) from None


def _first(group: BaseExceptionGroup[CannotStart]) -> CannotStart:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
