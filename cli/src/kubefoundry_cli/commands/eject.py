"""`kubefoundry eject`: the model goes on serving without KubeFoundry."""

from __future__ import annotations

import click

from kubefoundry_cli import cluster
from kubefoundry_cli.cluster import Target
from kubefoundry_cli.edit import YES, confirmed
from kubefoundry_cli.ejection import SECONDS, eject, owned_objects
from kubefoundry_cli.output import clean, say
from kubefoundry_cli.seconds import seconds


@click.command()
@click.argument("name")
@click.option(
    "--timeout",
    "limit",
    default=f"{SECONDS:.0f}s",
    show_default=True,
    metavar="DURATION",
    type=seconds,
    help="Wait at most so long until its provider has reported the pause.",
)
@YES
@cluster.options
def command(name: str, limit: float, yes: bool, target: Target) -> None:
    """Remove ModelDeployment NAME and keep its upstream object, which serves on, unmanaged and unchanged.

    \b
    kubefoundry eject llama
    kubefoundry import rayservice/llama        # the way back
    """  # noqa: D301

    async def work() -> str:
        async with cluster.session(target) as session:
            obj = await session.model(name)
            objects = await owned_objects(session, obj)
            kept_objects = ", ".join(
                clean(f"{kind.kind} '{live['metadata']['name']}'") for kind, live in objects
            )
            confirmed(
                f"remove ModelDeployment '{name}' from namespace {session.namespace} and keep {kept_objects}",
                yes,
            )
            await eject(session, obj, limit)
            return kept_objects

    kept_objects = cluster.run(work())
    say(f"ModelDeployment '{name}' is removed; {kept_objects} stays as it is")
