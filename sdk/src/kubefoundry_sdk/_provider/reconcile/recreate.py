"""Recreates an upstream object for a change that it cannot take in place (contract §4.18)."""

from __future__ import annotations

import logging
import re
from typing import Final

from kubefoundry_sdk._api import reasons
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._provider.contract import Deployment
from kubefoundry_sdk._provider.reconcile import preconditions
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.report import Stop
from kubefoundry_sdk._provider.write import apply, manifest, record_trust
from kubefoundry_sdk._provider.write.manifest import LastRecord, Record
from kubefoundry_sdk._provider.write.plan import Plan
from kubefoundry_sdk._runtime.refusals import Obstacle, Refused
from kubefoundry_sdk._runtime.store import key_of

log = logging.getLogger(__name__)


def applied(
    context: Context, deployment: Deployment, upstream: Object | None, last_record: LastRecord
) -> Record | None:
    """Return the record of the live object, or else of the last object, which is being deleted or is gone."""
    memory = context.memory((deployment.namespace, deployment.name))
    if upstream is not None and (
        manifest.is_owned_by(upstream, deployment.uid)
        or preconditions.is_adoptable(context, deployment, upstream)
    ):
        latest = last_record.of(upstream)
        if latest is not None:
            latest = record_trust.without_unused_image(latest, upstream)
        if not upstream["metadata"].get("deletionTimestamp"):
            memory.deleted_record = None
            return latest
        if latest is not None and memory.deleted_record is None:
            # Once the object is gone, only this memory shows which manifest ran.
            memory.deleted_record = (deployment.uid, record_trust.trusted(latest, upstream, upstream))
    uid, record = memory.deleted_record or ("", None)
    return record if uid == deployment.uid else None


_AMOUNTS: Final = re.compile(
    r"requested: (?P<requested>.+?), used: (?P<used>.+?), limited: (?P<limited>[^;]+)"
)
"""The amounts in a quota's refusal. The API server's response has them only in this text
(plugin/pkg/admission/resourcequota, Kubernetes 1.36)."""


def _fits_without(refusal: str) -> bool:
    """Check whether the quota would have room once the object that serves is gone.

    This is so if the quota only counts objects, and the request exceeds a limit by one.
    """
    match = _AMOUNTS.search(refusal)
    if match is None:
        return False
    amounts = match.groupdict()
    try:
        requested, used, limited = (_amounts(amounts[name]) for name in ("requested", "used", "limited"))
    except ValueError:
        return False
    return all(
        name.startswith("count/") and name in used and used[name] <= limited.get(name, 0)
        for name in requested
    )


def _amounts(text: str) -> dict[str, int]:
    """Return the amounts by name. Raise ValueError for anything but whole numbers."""
    return {
        name: int(amount) for name, _, amount in (part.partition("=") for part in text.strip().split(","))
    }


async def start(context: Context, kind: Kind, write_plan: Plan, upstream: Object) -> Stop:
    """Try the new object first, then delete the old one; its deletion event triggers the reconcile that creates.

    The helpers that the old object uses stay unchanged until it is gone.
    """
    admission = context.memory(key_of(upstream)).admission
    try:
        await apply.try_replacement(
            context.client, kind, context.helpers, write_plan, manager=context.manager, admission=admission
        )
    except Refused as refused:
        if refused.obstacle is not Obstacle.QUOTA:
            raise
        name, namespace = upstream["metadata"]["name"], upstream["metadata"]["namespace"]
        words = (
            f"{refused}. The change recreates the {kind.kind}, and the new one is first tried in a dry run beside "
            "the old one: the quota needs room for one more"
        )
        if _fits_without(str(refused)):
            words += (
                ". To recreate it without more quota (no model serves until the new one is ready), run: "
                f"kubectl -n {namespace} delete {kind.crd} {name}"
            )
        raise Refused(words, refused.retry) from refused
    if (record := manifest.applied(write_plan.main)) is not None:
        owner = write_plan.main["metadata"]["ownerReferences"][0]["uid"]
        context.memory(key_of(upstream)).deleted_record = (owner, record)
    await apply.remove_main(context.client, kind, upstream)
    named = f"{kind.kind} '{upstream['metadata']['name']}'"
    log.info("upstream object recreated", extra=logs.values(upstream=kind.kind, why=write_plan.recreate))
    return Stop(
        reasons.RESOURCE_CREATED,
        "Recreating",
        f"{named} is deleted and recreated: {write_plan.recreate}",
        failed=False,
    )
