"""`kubefoundry wait`: waits until a model is ready or deleted, and shows the progress."""

from __future__ import annotations

import asyncio
from typing import Final

import click

from kubefoundry_cli import cluster
from kubefoundry_cli.cluster import Session, Target
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.hint import hint
from kubefoundry_cli.model import endpoint, ready, summary
from kubefoundry_cli.output import clean, say
from kubefoundry_cli.seconds import seconds
from kubefoundry_sdk.api.conditions import find
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk.api.reasons import PROVIDER_SELECTED, READY
from kubefoundry_sdk.cluster.errors import ApiError, Silent, Unreachable

REFUSED: Final = ("Validated", "ProviderCompatible")
"""Conditions that, False at the current generation, only an edit makes True."""

STATES: Final = {"ready": "ready", "deleted": "deleted", "condition=Ready": "ready", "delete": "deleted"}
"""What may be waited for; the last two are as kubectl calls them."""

AGAIN: Final = 1.0
"""Seconds before another watch, after one that could not be kept."""


@click.command()
@click.argument("name")
@click.option("--for", "state", type=click.Choice([*STATES]), default="ready", show_default=True)
@click.option("--timeout", "seconds", default=600.0, show_default=True, metavar="SECONDS", type=seconds)
@cluster.options
def command(name: str, state: str, seconds: float, target: Target) -> None:
    """Wait until a model is ready, or deleted.

    Ends at once, with exit code 1, when the spec is refused or names a provider that is not registered, or when the
    model is scaled to zero. Exit code 6 when time is up.
    """
    cluster.run(_wait(name, STATES[state], seconds, target))


async def _wait(name: str, state: str, seconds: float, target: Target) -> None:
    async with cluster.session(target) as session:
        await until(session, name, state, seconds)


async def until(session: Session, name: str, state: str, seconds: float) -> None:
    """Raises Failure when it is refused, not there, or not so in time."""
    reported = ""
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    obj = await session.model(name)
                except Failure as failure:
                    if state == "deleted" and "not found" in failure.message:
                        say(f"ModelDeployment '{name}' is deleted")
                        return
                    raise
                reported = _report(obj, reported)
                if _done(obj, state):
                    return
                await _change(session, obj)
    except TimeoutError:
        raise Failure(
            f"ModelDeployment '{name}' is not {state} after {seconds:.0f} s: {reported or 'nothing was reported'}",
            Exit.TIMEOUT,
        ) from None


def _report(obj: Object, before: str) -> str:
    """Says what is new in phase and message; what was said."""
    now = summary(obj)
    if now != before:
        say(now)
    return now


def _done(obj: Object, state: str) -> bool:
    if state == "deleted":
        return False
    status = obj.get("status") or {}
    named = f"ModelDeployment '{obj['metadata']['name']}'"
    for type_ in (*REFUSED, PROVIDER_SELECTED):
        found = find(status.get("conditions"), type_) or {}
        if found.get("observedGeneration") != obj["metadata"]["generation"]:
            continue
        if type_ in REFUSED and found.get("status") == "False":
            raise Failure(f"{named} is refused: {clean(found.get('message'))}")
        if type_ == PROVIDER_SELECTED and found.get("reason") == "ProviderNotRegistered":
            raise Failure(f"{named} waits for a provider: {clean(found.get('message'))}")
    readiness = find(status.get("conditions"), READY) or {}
    if (readiness.get("reason"), readiness.get("observedGeneration")) == (
        "ScaledToZero",
        obj["metadata"]["generation"],
    ):
        name = obj["metadata"]["name"]
        raise Failure(f"{named} is scaled to zero, so it serves nothing: {hint(f'scale {name} 1')} starts it")
    if ready(obj):
        say(f"ready at {endpoint(status) or 'an endpoint that is not published yet'}")
        return True
    return False


async def _change(session: Session, obj: Object) -> None:
    """Returns when the object has changed, or may have."""
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
    except Unreachable:
        await asyncio.sleep(AGAIN)
    except ApiError as error:
        if not error.gone:
            raise of(error, f"watch ModelDeployment '{meta['name']}'") from error
