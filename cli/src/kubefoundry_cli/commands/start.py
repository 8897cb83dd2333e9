"""`kubefoundry start`: the page, on this machine."""

from __future__ import annotations

import click

from kubefoundry_cli import cluster
from kubefoundry_cli.cluster import Target
from kubefoundry_cli.failure import Exit, Failure


@click.command()
@click.option(
    "--port", default=3000, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one."
)
@click.option("--allow-writes", is_flag=True, help="Show buttons that change models, as far as you may.")
@cluster.options
def command(port: int, allow_writes: bool, target: Target) -> None:
    """Serve a page with models, providers and their reasons on this machine, until Ctrl-C.

    The page acts with the rights of your kubeconfig, for the one browser that opens the printed link.
    """
    try:
        from kubefoundry_dashboard.server import serve
    except ImportError as error:
        raise Failure(
            "the page's package is not installed with this command: pip install kubefoundry-cli[page]",
            Exit.USAGE,
        ) from error
    credentials, namespace = cluster.identity(target)
    cluster.run(serve(credentials, namespace, port, writes=allow_writes))
