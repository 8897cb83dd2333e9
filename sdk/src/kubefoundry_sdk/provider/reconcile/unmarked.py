"""Objects that a deletion leaves behind because they lost marks of ours: named before the ModelDeployment is gone
(contract §4.3)."""

from __future__ import annotations

from kubefoundry_sdk.api import managed_fields, reasons
from kubefoundry_sdk.api.kinds import HELPER_KINDS, Kind, Object
from kubefoundry_sdk.api.live import LiveModelDeployment
from kubefoundry_sdk.cluster.errors import ApiError
from kubefoundry_sdk.provider.reconcile.context import Context
from kubefoundry_sdk.provider.reconcile.finalizer import ORPHAN
from kubefoundry_sdk.provider.write import manifest
from kubefoundry_sdk.provider.write.helpers import Mark, mark
from kubefoundry_sdk.runtime.store import key_of


def remember(context: Context, live: Object) -> None:
    """Keep the evidence about the objects at each step of a deletion: the next status replaces it."""
    memory = context.memory(key_of(live))
    condition = LiveModelDeployment(live).condition(reasons.RESOURCE_CREATED) or {}
    memory.conflict |= condition.get("reason") == "NameConflict"
    memory.orphans |= ORPHAN in LiveModelDeployment(live).finalizers
    memory.cleaned |= {of for of in _marks(context, live) if _stored(context, live, of) is not None}


async def describe_leftovers(context: Context, live: Object) -> list[str]:
    """Return a note about each object that stays and was created for the ModelDeployment.

    It has no owner reference of ours, so it is not deleted: anybody may use our field manager's name, and
    `--cascade=orphan` removes the reference, too.
    """
    memory, (namespace, name) = context.memory(key_of(live)), key_of(live)
    main = (context.provider.upstream.kind, name)
    found = {}
    for of in _marks(context, live):
        obj = _stored(context, live, of)
        # Without the labels that we watch, it is not in the store. An object that was seen has been deleted since.
        is_missed = of not in memory.cleaned and (
            memory.admission.remembers(of) or (of == main and memory.conflict)
        )
        kind = context.upstream.kind if of == main else HELPER_KINDS[of[0]]
        if obj is None and kind is not None and kind.built_in and is_missed:
            obj = await _read(context, kind, (namespace, of[1]))
        found[of] = obj
    for obj in context.helpers.of(namespace, live["metadata"]["uid"]):
        found.setdefault(mark(obj), obj)
    notes = []
    for (word, called), obj in found.items():
        if obj is not None and (why := _left(context, live, obj, (word, called))):
            notes.append(f"{word} {namespace}/{called} stays: {why}; delete it unless somebody else uses it")
    return notes


def _left(context: Context, live: Object, obj: Object, of: Mark) -> str:
    """Return why an object of this ModelDeployment stays, empty if it does not, or is not of this one."""
    memory, uid = context.memory(key_of(live)), live["metadata"]["uid"]
    if obj["metadata"].get("deletionTimestamp") or manifest.owned_by(obj, uid):
        return ""
    if manifest.owner_uid(obj) is None:
        ours = context.manager in managed_fields.managers(obj)
        return "nothing on it shows that it was created for this ModelDeployment" if ours else ""
    if memory.orphans:
        return ""
    ours = manifest.made_for(obj, uid) or memory.admission.recognizes(of, obj)
    return "it has no owner reference to this ModelDeployment" if ours else ""


def _marks(context: Context, live: Object) -> set[Mark]:
    """Kind and name of the main object, and of the helpers that this process knows."""
    main = (context.provider.upstream.kind, key_of(live)[1])
    return {main, *context.memory(key_of(live)).admission.marks}


def _stored(context: Context, live: Object, of: Mark) -> Object | None:
    key = (key_of(live)[0], of[1])
    if of == (context.provider.upstream.kind, key_of(live)[1]):
        return context.upstream.objects.get(key)
    store = context.helpers.stores.get(of[0])
    return store.get(key) if store is not None else None


async def _read(context: Context, kind: Kind, key: tuple[str, str]) -> Object | None:
    """Return the object as the API server has it; None if that cannot be found out now."""
    namespace, name = key
    try:
        return await context.client.get(kind, name, namespace)
    except ApiError:
        return None
