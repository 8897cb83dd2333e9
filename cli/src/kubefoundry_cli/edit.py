"""Small writes to a ModelDeployment: shown, asked for, and refused where the object has changed meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from kubefoundry_cli.cluster import MANAGER, Session
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable

Operations = Sequence[Mapping[str, Any]]


YES: Final = click.option("-y", "--yes", is_flag=True, help="Skip the confirmation prompt.")


def confirmed(what: str, yes: bool) -> None:
    """Says what is about to happen, and asks unless --yes was given. Raises Failure when nobody can answer."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure(f"not done: {what}: there is no terminal to confirm it on; add --yes", Exit.USAGE)
    if not click.confirm(f"{what}. Continue?", err=True):
        raise Failure("nothing was changed")


def annotation(obj: Object, key: str, value: str | None) -> Operations:
    """JSON patch operations that set or remove an annotation."""
    known = obj["metadata"].get("annotations") or {}
    pointer = f"/metadata/annotations/{key.replace('~', '~0').replace('/', '~1')}"
    if value is None:
        return [{"op": "remove", "path": pointer}] if key in known else []
    if not known:
        return [{"op": "add", "path": "/metadata/annotations", "value": {key: value}}]
    return [{"op": "add", "path": pointer, "value": value}]


def guarded(obj: Object) -> Operations:
    """JSON patch operations that let a patch through to that very state of the object alone."""
    meta = obj["metadata"]
    return [
        {"op": "test", "path": "/metadata/uid", "value": meta["uid"]},
        # the API server compares it with the stored object: another one is a conflict
        {"op": "replace", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]},
    ]


async def write(session: Session, obj: Object, operations: Operations, doing: str) -> Object:
    """Applies the operations to that very state of the object. Raises Failure."""
    meta = obj["metadata"]
    try:
        return await session.client.json_patch(
            MODEL_DEPLOYMENTS, meta["name"], meta["namespace"], [*guarded(obj), *operations], manager=MANAGER
        )
    except (ApiError, Unreachable) as error:
        raise of(error, doing) from error
