"""`serve`: run a provider inside an existing program, on any asyncio event loop.

It adds no flags, signal handlers, logging set-up or ports. `run` runs a provider as a process.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import asdict, dataclass, fields
from typing import Self

from kubefoundry_sdk._api.names import SYSTEM_NAMESPACE
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.health.staleness import THRESHOLD
from kubefoundry_sdk._provider.run import parser, set_up
from kubefoundry_sdk._runtime.options import FINALIZER_TIMEOUT, HEARTBEAT_TIMEOUT
from kubefoundry_sdk._runtime.process import Process, own_namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The flags of a provider process (contract §6); times are in seconds.

    Attributes:
        leader_elect: Whether to reconcile only while holding the Lease `kubefoundry-provider-NAME`. Needed if the
            program runs more than once.
        health_port: 0 for none, because the program has its own.
        metrics_port: 0 for none, because the program has its own.
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

    @classmethod
    def from_environment(cls) -> Self:
        """Return the settings of the `KUBEFOUNDRY_…` variables of contract §6, ports included.

        They are the same as in a provider process. If a value is invalid, exit with a one-line message, as for an
        invalid flag.
        """
        parsed = parser("provider").parse_args([])
        parsed.namespace = own_namespace(parsed)
        return cls(**{field.name: getattr(parsed, field.name) for field in fields(cls)})


def connect(provider: Provider, settings: Settings | None = None) -> Client:
    """Return a client for `serve`; enter it with `async with`.

    The client uses the ServiceAccount in a cluster, else kubectl's kubeconfig.

    Raises:
        NoCredentials: Neither exists; its text is one line that says what to do.
    """
    loaded = credentials.load((settings or Settings()).kubeconfig)
    return Client(loaded, user_agent=f"kubefoundry-provider-{provider.name}")


async def serve(
    provider: Provider, client: Client, stop: asyncio.Event, settings: Settings | None = None
) -> None:
    """Register the provider and reconcile until `stop` is set or the task is cancelled. Leaves nothing running.

    Waits for an API server that is not reachable. Raises CannotStart if waiting cannot help, because the CRDs are not
    installed or the token is refused.
    """
    options = argparse.Namespace(**asdict(settings or Settings()))
    process = Process(f"kubefoundry-provider-{provider.name}", options, client)
    set_up(process, provider)
    await process.run(stop)
