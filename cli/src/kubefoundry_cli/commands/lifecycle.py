"""`kubefoundry pause|resume|reselect|refresh|scale`: one field or annotation of a model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import click

from kubefoundry_cli import cluster
from kubefoundry_cli.cluster import Session, Target
from kubefoundry_cli.edit import YES, Operations, confirmed, write
from kubefoundry_cli.hint import hint
from kubefoundry_cli.operations import paused, refreshed, reselected, resumed, scaled
from kubefoundry_cli.output import say
from kubefoundry_cli.suspension import check_not_deleted, suspensions
from kubefoundry_sdk._api.kinds import Object


def _whole(_: click.Context, __: click.Parameter, value: str) -> int:
    if not (value.isascii() and value.isdecimal()):
        raise click.BadParameter(f"'{value}' is not a whole number of 0 or more")
    digits = value.lstrip("0") or "0"
    if len(digits) > 9:
        raise click.BadParameter(f"'{value}' is more than 999999999")
    return int(digits)


@click.command()
@click.argument("name")
@cluster.options
def pause(name: str, target: Target) -> None:
    """Stop reconciling a model: what runs keeps running, and edits have no effect until it is resumed."""
    _write(
        name,
        target,
        paused,
        f"is paused: what runs keeps running, and edits have no effect until {hint(f'resume {name}')}",
        already="is paused already",
    )


@click.command()
@click.argument("name")
@cluster.options
def resume(name: str, target: Target) -> None:
    """Reconcile a paused model again."""
    _write(name, target, resumed, "is resumed", already="is not paused")


@click.command()
@click.argument("name")
@YES
@cluster.options
def reselect(name: str, yes: bool, target: Target) -> None:
    """Select a model's provider again; what serves keeps serving until another provider can take over."""
    _write(
        name,
        target,
        reselected,
        "will have its provider selected again",
        ask="select its provider again; a different provider recreates the model",
        yes=yes,
    )


@click.command()
@click.argument("name")
@YES
@cluster.options
def refresh(name: str, yes: bool, target: Target) -> None:
    """Render a model again with the current defaults, such as a newer default image."""
    _write(
        name,
        target,
        refreshed,
        "will be rendered again",
        ask="render it again with the current defaults, which may restart its pods",
        yes=yes,
    )


# -1 is a bad number, not an unknown option
@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("replicas", callback=_whole)
@cluster.options
def scale(name: str, replicas: int, target: Target) -> None:
    """Set the number of REPLICAS of an aggregated model; 0 frees its GPUs.

    Nothing is changed if its provider would refuse that number.
    """
    _write(
        name,
        target,
        lambda obj: scaled(obj, replicas),
        f"scaled to {replicas} replica{'' if replicas == 1 else 's'}",
        then=f"; {hint(f'status {name}')} shows the progress",
        already=f"asks for {replicas} replica{'' if replicas == 1 else 's'} already",
        check=lambda session, obj: _check_accepted(session, obj, replicas),
    )


async def _check_accepted(session: Session, obj: Object, replicas: int) -> None:
    # Imported here: it loads the provider packages, which the other commands do not need.
    from kubefoundry_cli.replicas import check_accepted

    await check_accepted(session, obj, replicas)


def _write(
    name: str,
    target: Target,
    change: Callable[[Object], Operations],
    done: str,
    *,
    already: str = "has that request already",
    then: str = "",
    ask: str | None = None,
    yes: bool = False,
    check: Callable[[Session, Object], Awaitable[None]] | None = None,
) -> None:
    """Change a model, and report whether anything was written and whether it has an effect now.

    Args:
        name: The model's name.
        target: The cluster.
        change: Returns the operations for the object that was read.
        done: The result, as the end of a sentence.
        already: The state in which there is nothing to write.
        then: The rest of the sentence if the change has an effect now.
        ask: The question to confirm first, None if no confirmation is needed.
        yes: Whether to skip the confirmation.
        check: Raises Failure if the change would be refused.

    Raises:
        Failure: The model is being deleted, or cannot be changed.
    """

    async def work() -> tuple[bool, Object]:
        async with cluster.session(target) as session:
            obj = await session.model(name)
            check_not_deleted(obj)
            if ask is not None:
                confirmed(f"ModelDeployment '{name}' in namespace {session.namespace}: {ask}", yes)
            operations = change(obj)
            if operations and check is not None:
                await check(session, obj)
            if operations:
                obj = await write(session, obj, operations, f"change ModelDeployment '{name}'")
            return bool(operations), obj

    written, obj = cluster.run(work())
    held = "; ".join([] if change is paused else suspensions(obj))
    if written:
        rest = f", but it has no effect now: {held}" if held else then
    else:
        rest = f"; {held}" if held else ""
    say(f"ModelDeployment '{name}' {done if written else f'{already}: nothing was changed'}{rest}")
