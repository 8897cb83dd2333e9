"""`kubefoundry version`: the versions of the command line, of the API server and of the providers."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Final

import click

from kubefoundry_cli import cluster, output, server
from kubefoundry_cli.cluster import Target
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.output import say
from kubefoundry_sdk._api import build
from kubefoundry_sdk._api.kinds import PROVIDER_CONFIGS
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

CHECKOUT: Final = Path(__file__).resolve().parents[4]
"""The checkout, if the command line runs from one."""

Versions = dict[str, str | dict[str, str]]
"""The versions by component; the value of `providers` has them by name."""


@click.command()
@click.option("--client", is_flag=True, help="Print only this command's version; contacts no cluster.")
@output.option("table", "json", "yaml")
@cluster.options
def command(client: bool, form: str, target: Target) -> None:
    """Print the version of the command line, of the API server, and of the providers in the cluster.

    As with kubectl, JSON and YAML also have the commit that the command line was built from.
    """
    versions: Versions = {"kubefoundry": version("kubefoundry-cli")}
    if form == "table":
        _print(versions)
    elif built_from := build.commit() or build.describe(CHECKOUT):
        versions["commit"] = built_from
    rest, failure = ({}, None) if client else cluster.run(_of_cluster(target))
    if form == "table":
        _print(rest)
    else:
        output.data(versions | rest, form)
    if failure:
        raise failure


def _print(versions: Versions) -> None:
    for name, value in versions.items():
        lines = (
            {name: value}
            if isinstance(value, str)
            else {f"provider {provider_name}": value[provider_name] for provider_name in value}
        )
        for title, text in lines.items():
            print(f"{title}: {output.clean(text)}", flush=True)


async def _of_cluster(target: Target) -> tuple[Versions, Failure | None]:
    """Return the versions, and why versions are missing."""
    try:
        return await _versions(target)
    except Failure as failure:
        return {}, failure


async def _versions(target: Target) -> tuple[Versions, Failure | None]:
    """Return the versions, and why the versions of the providers are missing. Raises Failure."""
    async with cluster.session(target) as session:
        versions: Versions = {"kubernetes": await server.version(session)}
        try:
            configs, _ = await session.client.list(PROVIDER_CONFIGS)
        except (ApiError, Unreachable) as error:
            failure = of(error, "list providers")
            if failure.exit_code == Exit.FORBIDDEN:
                # Users of a namespace need not see the providers.
                say(failure.message)
                return versions, None
            return versions, failure
        versions["providers"] = {
            config["metadata"]["name"]: str((config.get("status") or {}).get("version") or "never reported")
            for config in configs
        }
        return versions, None
