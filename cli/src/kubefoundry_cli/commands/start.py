"""`kubefoundry start`: the page, on this machine."""

from __future__ import annotations

import click

from kubefoundry_cli import cluster
from kubefoundry_cli.cluster import Session, Target
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.hint import hint, name_namespaces
from kubefoundry_sdk._api.names import API_VERSION
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable


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

    async def work() -> None:
        async with cluster.session(target) as session:
            await _refuse_without_kubefoundry(session)
        name_namespaces()
        await serve(credentials, namespace, port, writes=allow_writes)

    cluster.run(work())


async def _refuse_without_kubefoundry(session: Session) -> None:
    """Raise Failure if the API server serves none of our kinds. The page itself reports other errors."""
    try:
        await session.client.read(f"/apis/{API_VERSION}")
    except Unreachable:
        return
    except ApiError as error:
        if error.not_found:
            raise Failure(
                f"kubefoundry-controller not found in cluster.\nRun '{hint('controller install')}' first.",
                Exit.NO_CLUSTER,
            ) from error
