"""The page on the user's machine: for one browser, with the kubeconfig's rights, on the loopback address."""

from __future__ import annotations

import asyncio
import signal

from aiohttp import web

from kubefoundry_cli.failure import Failure
from kubefoundry_cli.output import say
from kubefoundry_dashboard.access import Local
from kubefoundry_dashboard.application import make
from kubefoundry_sdk._cluster.credentials import Credentials

HOST = "127.0.0.1"


async def serve(credentials: Credentials, namespace: str, port: int, *, writes: bool) -> None:
    """Serve the page until SIGINT or SIGTERM, and print the link that signs a browser in.

    Raises:
        Failure: The port is in use.
    """
    access = Local(credentials, namespace, port)
    runner = web.AppRunner(make(access, writes=writes), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, HOST, port)
    try:
        await site.start()
    except OSError as error:
        await runner.cleanup()
        raise Failure(f"cannot listen on {HOST}:{port}: {error.strerror}; choose another --port") from error
    access.port = runner.addresses[0][1]
    print(f"http://{HOST}:{access.port}/?code={access.code}", flush=True)
    say(
        f"Starting UI at http://{HOST}:{access.port}. Open the link above; it works once. Ctrl-C ends the page."
    )
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    await runner.cleanup()
