"""An upstream object that has lost its owner, or every mark of ours: named before its ModelDeployment is gone
(contract §4.3)."""

from __future__ import annotations

from kubefoundry_sdk.api import managed_fields, reasons
from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.api.live import LiveModelDeployment
from kubefoundry_sdk.cluster.errors import ApiError
from kubefoundry_sdk.provider.reconcile.context import Context
from kubefoundry_sdk.provider.write import manifest
from kubefoundry_sdk.runtime.store import key_of


def remember(context: Context, live: Object) -> None:
    """Keep the evidence about the main object at each step of a deletion: the next status replaces it."""
    memory = context.memory(key_of(live))
    condition = LiveModelDeployment(live).condition(reasons.RESOURCE_CREATED) or {}
    memory.conflict |= condition.get("reason") == "NameConflict"
    memory.cleaned |= context.upstream.objects.get(key_of(live)) is not None


async def describe_leftover(context: Context, live: Object) -> str | None:
    """Return a note about an object that stays although our field manager applied it, None if there is none.

    It has the ModelDeployment's name, and no owner reference of ours. Anybody may use our field manager's name, and
    `--cascade=orphan` removes the owner on purpose, so it is not deleted. An ejected one has no entry of our field
    manager.
    """
    kind = context.upstream.kind
    if kind is None:
        return None
    obj = context.upstream.objects.get(key_of(live))
    memory = context.memory(key_of(live))
    known = memory.admission.remembers((kind.kind, key_of(live)[1]))
    # Without the labels that we watch, it is not in the store. An object that was seen has been deleted since.
    if obj is None and kind.built_in and (memory.conflict or (known and not memory.cleaned)):
        obj = await _read(context, kind, live)
    if (
        obj is None
        or obj["metadata"].get("deletionTimestamp")
        or context.manager not in managed_fields.managers(obj)
    ):
        return None
    namespace, name = key_of(live)
    marked, uid = manifest.owner_uid(obj), live["metadata"]["uid"]
    if marked == uid and not manifest.owned_by(obj, uid):
        return (
            f"{kind.kind} {namespace}/{name} stays, though it was created for this ModelDeployment: it has no owner "
            "reference to it (--cascade=orphan, an admission webhook or somebody else removed it); delete it unless "
            "it is to stay"
        )
    if marked is not None:
        return None
    return (
        f"{kind.kind} {namespace}/{name} stays: nothing on it shows that it was created for this ModelDeployment; "
        "delete it unless somebody else uses it"
    )


async def _read(context: Context, kind: Kind, live: Object) -> Object | None:
    """Return the object as the API server has it; None if that cannot be found out now."""
    namespace, name = key_of(live)
    try:
        return await context.client.get(kind, name, namespace)
    except ApiError:
        return None
