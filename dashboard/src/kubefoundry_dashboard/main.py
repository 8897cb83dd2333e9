"""Entry point in a cluster: the page for everybody who has a token. The process has no rights of its own."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Final

import click
from aiohttp import web

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.hint import name_namespaces
from kubefoundry_dashboard.access import InCluster
from kubefoundry_dashboard.application import make
from kubefoundry_sdk._cluster.credentials import SERVICE_ACCOUNT_DIR, Credentials

PORT: Final = 8080


@click.command()
@click.option("--address", default=None, help="Address to listen on. Default: all.")
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65535))
@click.option(
    "--host-name", "names", multiple=True, metavar="NAME", help="Host name of the page; repeatable."
)
@click.option("--allow-writes", is_flag=True, help="Let viewers act, with their own rights.")
def command(address: str | None, port: int, names: tuple[str, ...], allow_writes: bool) -> None:
    """Serve the page in a cluster: each request acts with the bearer token of its viewer."""
    name_namespaces()
    app = make(InCluster(_anonymous()), names=names, writes=allow_writes)
    web.run_app(app, host=address, port=port, print=None, access_log=None, shutdown_timeout=1.0)


def _anonymous() -> Credentials:
    """Return the address and the CA of the pod's API server, without a token.

    Raises:
        Failure: The process is not in a pod, or the CA is unreadable.
    """
    host, port = (
        os.environ.get("KUBERNETES_SERVICE_HOST", ""),
        os.environ.get("KUBERNETES_SERVICE_PORT", "443"),
    )
    folder = Path(os.environ.get("KUBEFOUNDRY_SERVICE_ACCOUNT_DIR", SERVICE_ACCOUNT_DIR))
    if not host:
        raise Failure("this is not a pod of a cluster; on your own machine: kubefoundry start", Exit.USAGE)
    try:
        tls = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    except OSError as error:
        raise Failure(f"cannot read the cluster's CA at {folder / 'ca.crt'}: {error.strerror}") from error
    return Credentials(f"https://{f'[{host}]' if ':' in host else host}:{port}", tls, lambda: None)


def main() -> None:
    """Run the console script."""
    command()
