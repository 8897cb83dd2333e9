"""Confirm and write small edits of a ModelDeployment; refuse them if the object has changed meanwhile."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from kubefoundry_cli.cluster import MANAGER, Session
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

Operations = Sequence[Mapping[str, Any]]

TRIES: Final = 8
"""Maximum number of attempts to write an object that controllers write at the same time."""

YES: Final = click.option("-y", "--yes", is_flag=True, help="Skip the confirmation prompt.")


def confirmed(what: str, yes: bool) -> None:
    """Ask for a confirmation unless --yes was given. Raises Failure if nobody can answer, or the answer is no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure(f"not done: {what}: there is no terminal to confirm it on; add --yes", Exit.USAGE)
    # In a coroutine, the first Ctrl-C would only cancel the task, and the prompt would go on waiting.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if not click.confirm(f"{what}. Continue?", err=True):
            raise Failure("nothing was changed")
    except click.Abort:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)


def annotation(obj: Object, key: str, value: str | None) -> Operations:
    """Return JSON patch operations that set or remove an annotation."""
    annotations = obj["metadata"].get("annotations") or {}
    pointer = f"/metadata/annotations/{key.replace('~', '~0').replace('/', '~1')}"
    if value is None:
        return [{"op": "remove", "path": pointer}] if key in annotations else []
    if not annotations:
        return [{"op": "add", "path": "/metadata/annotations", "value": {key: value}}]
    return [{"op": "add", "path": pointer, "value": value}]


def guarded(obj: Object) -> Operations:
    """Return JSON patch operations that let a patch succeed only on this state of the object."""
    meta = obj["metadata"]
    return [
        {"op": "test", "path": "/metadata/uid", "value": meta["uid"]},
        # The API server compares the version with that of the stored object, and reports a conflict if they differ.
        {"op": "replace", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]},
    ]


async def guarded_patch(
    session: Session,
    kind: Kind,
    live: Object,
    operations: Callable[[Object], Operations],
    *,
    still: Callable[[Object], bool] = lambda now: True,
) -> Object:
    """Patch the object; on a conflict rebuild the patch from the new state while `still(new)` holds.

    Args:
        session: The cluster.
        kind: The kind of the object.
        live: The object that was read.
        operations: Returns the operations for a state of the object.
        still: Whether a new state of the object may be patched.

    Raises:
        ApiError: The API server refuses the patch, or the last try ended in a conflict.
        Unreachable: The API server does not answer.
    """
    name, namespace = live["metadata"]["name"], live["metadata"]["namespace"]
    for attempt in range(TRIES):
        patch = [*guarded(live), *operations(live)]
        try:
            return await session.client.json_patch(kind, name, namespace, patch, manager=MANAGER)
        except ApiError as error:
            if not error.conflict or attempt + 1 == TRIES:
                raise
            refused = error
        live = await session.client.get(kind, name, namespace)
        if not still(live):
            raise refused
    raise AssertionError("the last attempt returns or raises")


async def write(session: Session, obj: Object, operations: Operations, doing: str) -> Object:
    """Patch the object that was read, unless somebody else has changed its user content.

    A status that a controller writes meanwhile does not count. Raises Failure.
    """
    try:
        return await guarded_patch(
            session,
            MODEL_DEPLOYMENTS,
            obj,
            lambda _: operations,
            still=lambda now: user_content(now) == user_content(obj),
        )
    except (ApiError, Unreachable) as error:
        raise of(error, doing) from error


def user_content(obj: Object) -> tuple[Object, ...]:
    """Return the content that users write, and the identity of the object."""
    keys = ("uid", "labels", "annotations", "deletionTimestamp")
    content = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    return content, {key: obj["metadata"].get(key) for key in keys}
