"""Annotation `kubefoundry.ai/dry-run: "true"`: the objects to apply, and the API server's response.

Nothing is stored upstream and no finalizer is set; the result is in an annotation (contract §4.14).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Final, NamedTuple

from kubefoundry_sdk._api import names, reasons
from kubefoundry_sdk._api.conditions import clip
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.reconcile import finalizer
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.report import Stop
from kubefoundry_sdk._provider.write import apply, manifest
from kubefoundry_sdk._provider.write.helpers import Mark, kind_of, mark
from kubefoundry_sdk._provider.write.plan import Plan
from kubefoundry_sdk._runtime.refusals import Refused
from kubefoundry_sdk._runtime.server_side_apply import NameTaken

log = logging.getLogger(__name__)

LARGEST: Final = 192 * 1024
"""The longest result in bytes. Kubernetes allows 256 KiB for all annotations of an object, and other annotations need
room, too."""

AGAIN: Final = 30.0
"""Seconds after which the removal of a result is tried again."""

SHORT: Final = 4096
"""Characters of the message that are kept when the objects are omitted."""


def is_requested(deployment: Object) -> bool:
    """Check whether the user requests a dry run."""
    return (deployment["metadata"].get("annotations") or {}).get(names.DRY_RUN_ANNOTATION) == "true"


async def run(
    client: Client,
    kind: Kind,
    write_plan: Plan,
    live: Object | None,
    helpers: Mapping[Mark, Object],
    *,
    manager: str,
) -> tuple[Stop, str]:
    """Return the result of `trial`: the condition to report, and JSON text.

    The text has `accepted`, `message` and `objects`, the manifests without KubeFoundry's record on them. `omitted`
    means that they are too large.
    """
    outcome = await trial(client, kind, write_plan, live, helpers, manager=manager)
    result = {
        "accepted": outcome.accepted,
        "message": outcome.message,
        "objects": [manifest.content(obj) for obj in write_plan.objects],
    }
    stop = Stop(
        reasons.RESOURCE_CREATED,
        "DryRun",
        f"Dry run: {outcome.message}; remove annotation {names.DRY_RUN_ANNOTATION} to apply",
        failed=False,
    )
    return stop, text_of(result)


class Trial(NamedTuple):
    """The API server's answer to a dry run.

    Attributes:
        accepted: None if the main object could not be tried: its admission may require a helper that does not exist
            yet, and a dry run must not create the helper.
        message: The outcome, or the refusal.
        lacking: The API server's message without our advice, if the caller lacks a permission; empty otherwise.
    """

    accepted: bool | None
    message: str
    lacking: str


async def trial(
    client: Client,
    kind: Kind,
    write_plan: Plan,
    live: Object | None,
    helpers: Mapping[Mark, Object],
    *,
    manager: str,
) -> Trial:
    """Send all objects of the plan as server-side dry runs. `live` and `helpers` are the existing objects."""
    outcome = _outcome(kind, write_plan, live)
    try:
        for obj in write_plan.helpers:
            existing = helpers.get(mark(obj))
            await apply.try_apply(client, kind_of(obj), obj, manager=manager, live=existing)
    except (Refused, NameTaken) as error:
        return _failed(error)
    try:
        if write_plan.recreate:
            await apply.try_new(client, kind, write_plan.main, manager=manager)
        else:
            await apply.try_apply(client, kind, write_plan.main, manager=manager, live=live)
    except (Refused, NameTaken) as error:
        missing = [obj for obj in write_plan.helpers if mark(obj) not in helpers]
        creation = _named_helper(missing, str(error)) if isinstance(error, Refused) else None
        if creation is None:
            return _failed(error)
        message = f"{outcome}, but only after {creation}; until then, admission reports: {error}"
        return _failed(error)._replace(accepted=None, message=message)
    return Trial(True, outcome if write_plan.changed else f"{_named(kind, write_plan)} would not change", "")


def _named(kind: Kind, write_plan: Plan) -> str:
    return f"{kind.kind} '{write_plan.main['metadata']['name']}'"


def _outcome(kind: Kind, write_plan: Plan, live: Object | None) -> str:
    verb = "would be recreated" if write_plan.recreate else "would be updated" if live else "would be created"
    return f"{_named(kind, write_plan)} {verb}"


def _failed(error: Refused | NameTaken) -> Trial:
    if isinstance(error, Refused):
        return Trial(False, str(error), error.lacking)
    return Trial(False, f"{error} exists and was not created for this ModelDeployment", "")


def text_of(result: Object) -> str:
    """Return the result for the annotation, without the objects if these are too large for an annotation."""
    text = json.dumps(result, sort_keys=True)
    if len(text.encode()) <= LARGEST:
        return text
    left_out = f"{len(result['objects'])} objects of {len(text.encode())} bytes together: too large for an annotation"
    short = {**result, "message": clip(result["message"], SHORT), "objects": [], "omitted": left_out}
    return json.dumps(short, sort_keys=True)


def _named_helper(missing: list[Object], refusal: str) -> str | None:
    """Return the missing helpers that a refusal names, as text, or None if it names none.

    Search the text, because a webhook's refusal has no field for the object that the webhook looked for.
    """
    for obj in missing:
        if obj["metadata"]["name"] in refusal:
            return f"{obj['kind']} '{obj['metadata']['name']}' is created"
    return None


async def withdraw(context: Context, live: Object) -> float | None:
    """Remove the outdated result of an earlier dry run. Return the seconds until the next attempt, or None.

    An error does not end the reconcile, because the status has to be written in any case.
    """
    has_finalizer = finalizer.has(live, context.provider.name)
    try:
        await finalizer.own(context, live, hold=has_finalizer, dry_run_result=None)
    except Refused as refused:
        return refused.retry
    except ApiError as error:
        log.warning("the dry-run result cannot be removed", extra=logs.values(error=str(error)))
        return AGAIN
    return None
