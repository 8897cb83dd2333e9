"""`kubefoundry logs`: the logs of a model's pods, each line after its pod's name."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import click

from kubefoundry_cli import cluster
from kubefoundry_cli.cluster import Session, Target
from kubefoundry_cli.failure import Failure, of
from kubefoundry_cli.hint import hint
from kubefoundry_cli.output import clean, say, write_foreign
from kubefoundry_cli.pods import NoLog, NoSuchRole, NotToBeFound, containers_of, log_lines, of_model
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable


@click.command()
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Keep printing new lines.")
@click.option("-p", "--previous", is_flag=True, help="Logs of the containers before their last restart.")
@click.option("--role", help="Only pods of that role: head, worker, frontend, prefill, decode.")
@click.option(
    "--tail",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="Last lines to print of each container.",
)
@cluster.options
def command(name: str, follow: bool, previous: bool, role: str | None, tail: int, target: Target) -> None:
    """Print the logs of all pods of a model, all containers.

    On a terminal, control characters are replaced by spaces.
    """
    parameters = f"tailLines={tail}&previous={str(previous).lower()}"
    cluster.run(_logs(name, role, parameters, follow, target))


async def _logs(name: str, role: str | None, parameters: str, follow: bool, target: Target) -> None:
    async with cluster.session(target) as session:
        obj = await session.model(name)
        try:
            pods = await of_model(session, obj, role)
        except NoSuchRole as error:
            raise Failure(f"cannot print logs of ModelDeployment '{name}': {error}") from error
        except NotToBeFound as error:
            raise Failure(f"cannot find the pods of ModelDeployment '{name}': {error}") from error
        if not pods:
            raise Failure(f"ModelDeployment '{name}' has no pods yet; {hint(f'status {name}')}")
        containers = containers_of(pods)
        is_single = len(containers) == 1
        printed: set[str] = set()

        def read(pod: Object, container: str) -> Coroutine[Any, Any, bool]:
            return _read(session, pod, container, parameters, follow, is_single, printed)

        if follow:
            done = await asyncio.gather(*(read(pod, container) for pod, container in containers))
        else:
            # A coroutine that is made and not awaited, because an earlier one fails, is warned about.
            done = [await read(pod, container) for pod, container in containers]
        if not any(done):
            raise Failure(f"no log of ModelDeployment '{name}' could be read; {hint(f'status {name}')}")


async def _read(
    session: Session,
    pod: Object,
    container: str,
    parameters: str,
    follow: bool,
    is_single: bool,
    printed: set[str],
) -> bool:
    """Print a container's log, and return whether there was a log. `printed` has the failures that were reported."""
    meta = pod["metadata"]
    before = b"" if is_single else f"{meta['name']}/{container} ".encode()
    has_lines = False
    try:
        async for line in log_lines(session, pod, container, parameters, follow=follow):
            has_lines = True
            write_foreign(before + line.rstrip(b"\n") + b"\n")
        return True
    except ApiError as error:
        if error.code == 403:
            raise of(error, f"read the log of pod '{meta['name']}'") from error
        # a container that has not started has no log
        if error.message not in printed:
            printed.add(error.message)
            say(clean(f"{meta['name']}/{container}: {error.message}"))
        return False
    except NoLog as error:
        say(clean(f"{meta['name']}/{container}: {error}"))
        return has_lines
    except Unreachable as error:
        raise of(error, f"read the log of pod '{meta['name']}'") from error
