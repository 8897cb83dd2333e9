"""`kubefoundry wait`: wait until a model is ready or deleted, and show the progress."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

import click

from kubefoundry_cli import cluster
from kubefoundry_cli.cluster import Session, Target, name_only
from kubefoundry_cli.failure import Exit, Failure, Missing, of
from kubefoundry_cli.health import PHRASES, health_of, summary
from kubefoundry_cli.hint import hint, kubectl
from kubefoundry_cli.output import say
from kubefoundry_cli.seconds import seconds
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster import retry
from kubefoundry_sdk._cluster.errors import ApiError, Silent, Unreachable

STATES: Final = {"ready": "ready", "deleted": "deleted", "condition=Ready": "ready", "delete": "deleted"}
"""The values of --for; the last two are those of kubectl."""

KEEP_WAITING: Final = click.option(
    "--keep-waiting",
    is_flag=True,
    help="Wait on, even if the model cannot become ready before somebody changes it.",
)

AGAIN: Final = 1.0
"""Seconds between a failed watch and the next."""


@click.command()
@click.argument("name")
@click.option("--for", "state", type=click.Choice([*STATES]), default="ready", show_default=True)
@click.option(
    "--timeout",
    "seconds",
    default="10m",
    show_default=True,
    metavar="DURATION",
    type=seconds,
    help="Wait at most so long: 20m, 1h30m, 90s. A number without a unit is seconds.",
)
@KEEP_WAITING
@cluster.options
def command(name: str, state: str, seconds: float, keep_waiting: bool, target: Target) -> None:
    """Wait until a model is ready, or deleted.

    Ends at once, with exit code 1, when the model cannot become ready before somebody changes something: its spec is
    refused, it has failed, it is paused or scaled to zero, no provider takes it. Exit code 6 when time is up.
    """
    cluster.run(_wait(name, STATES[state], seconds, keep_waiting, target))


async def _wait(name: str, state: str, seconds: float, keep_waiting: bool, target: Target) -> None:
    async with cluster.session(target) as session:
        await until(session, name_only(name), state, seconds, keep_waiting=keep_waiting)


async def until(session: Session, name: str, state: str, seconds: float, *, keep_waiting: bool) -> None:
    """Wait until a model is `ready` or `deleted`.

    Args:
        session: The cluster.
        name: The model's name.
        state: `ready` or `deleted`.
        seconds: The timeout; 0 checks once.
        keep_waiting: Whether to wait for somebody else to change a model that cannot become ready by itself.

    Raises:
        Failure: The model is refused or missing, or does not reach the state in time.
    """
    obj: Object | None = None
    reported = ""
    try:
        async with asyncio.timeout(seconds or None):
            while True:
                try:
                    obj = await session.model(name)
                except Missing:
                    if state != "deleted":
                        raise
                    say(_absence(session, name, obj))
                    return
                reported = _report(obj, reported)
                if state == "ready" and _ready(obj, keep_waiting=keep_waiting):
                    return
                if not seconds:
                    raise TimeoutError
                await _change(session, obj)
    except TimeoutError:
        why = _late(obj, state) if obj else "the API server has not answered"
        raise Failure(
            f"ModelDeployment '{name}' is not {state} after {seconds:.0f} s: {why}", Exit.TIMEOUT
        ) from None


def _absence(session: Session, name: str, last: Object | None) -> str:
    if last:
        return f"ModelDeployment '{name}' is deleted"
    return f"there is no ModelDeployment '{name}' in namespace {session.namespace}"


def _late(obj: Object, state: str) -> str:
    """Return the verdict on a model that is not ready or deleted in time."""
    health, meta = health_of(obj), obj["metadata"]
    if state == "deleted" and health.state != "Deleting":
        return f"nobody has deleted it; {kubectl('delete modeldeployment ' + health.name, meta['namespace'])}"
    if health.severity == "pending":
        # Replace its remedy, which is to wait.
        health = replace(health, remedy=hint(f"status {health.name}"))
    return health.text


def _report(obj: Object, before: str) -> str:
    """Print phase and message if they differ from `before`, and return them."""
    now = summary(obj)
    if now != before:
        say(now)
    return now


def _ready(obj: Object, *, keep_waiting: bool) -> bool:
    """Check whether the newest edit serves. Raises Failure if somebody has to change the model first."""
    health = health_of(obj)
    if health.ready:
        say(f"ready at {health.endpoint or 'an endpoint that is not published yet'}")
        return True
    if health.final and not keep_waiting:
        todo = f"; {health.remedy}" if health.remedy else ""
        why = f": {health.reason}" if health.reason else ""
        raise Failure(f"ModelDeployment '{health.name}' {PHRASES[health.state]}{why}{todo}")
    return False


async def _change(session: Session, obj: Object) -> None:
    """Wait until the object has changed, or may have changed."""
    meta = obj["metadata"]
    try:
        async for event in session.client.watch(
            MODEL_DEPLOYMENTS,
            meta["namespace"],
            resource_version=meta["resourceVersion"],
            seconds=60,
            silence=90,
            selector={"fieldSelector": f"metadata.name={meta['name']}"},
        ):
            if event["type"] != "BOOKMARK":
                return
    except Silent:
        return
    except Unreachable as error:
        await asyncio.sleep(retry.wait(AGAIN, error))
    except ApiError as error:
        if not error.gone:
            raise of(error, f"watch ModelDeployment '{meta['name']}'") from error
