"""Names the objects that a deletion leaves behind because they have lost our marks (contract §4.3)."""

from __future__ import annotations

from kubefoundry_sdk._api import managed_fields
from kubefoundry_sdk._api.conditions import first_of
from kubefoundry_sdk._api.kinds import HELPER_KINDS, Kind, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.finalizer import ORPHAN
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.helpers import Mark, mark
from kubefoundry_sdk._runtime.store import key_of


def remember(context: Context, live: Object) -> None:
    """Remember at each reconcile of a deletion whether it orphans, and which objects exist, before they are gone."""
    memory = context.memory(key_of(live))
    memory.is_orphaning |= ORPHAN in LiveModelDeployment(live).finalizers
    memory.cleaned |= {
        own_mark for own_mark in _marks(context, live) if _stored(context, live, own_mark) is not None
    }


async def describe_leftovers(context: Context, live: Object) -> list[str]:
    """Return a note about each object that stays and was created for the ModelDeployment.

    Such an object has no owner reference to the ModelDeployment, so it is not deleted. Our field manager is no proof,
    because anybody may use its name, and `--cascade=orphan` also removes the reference. An object without the labels
    that we watch is not deleted either, and stays if it has another owner.
    """
    memory, (namespace, name) = context.memory(key_of(live)), key_of(live)
    main = (context.provider.upstream.kind, name)
    objects, unseen = {}, set()
    for own_mark in _marks(context, live):
        obj = _stored(context, live, own_mark)
        # An object without the labels that we watch is not in the store. An object that the deletion has seen is
        # really gone. A process that has just started knows nothing of the helpers.
        is_missed = own_mark not in memory.cleaned
        kind = context.upstream.kind if own_mark == main else HELPER_KINDS[own_mark[0]]
        if obj is None and kind is not None and kind.built_in and is_missed:
            obj = await read(context, kind, (namespace, own_mark[1]))
            unseen.add(own_mark)
        objects[own_mark] = obj
    for obj in context.helpers.of(namespace, live["metadata"]["uid"]):
        objects.setdefault(mark(obj), obj)
    return [
        f"{own_mark[0]} {namespace}/{own_mark[1]} stays: {why}; delete it unless somebody else uses it"
        for own_mark, obj in objects.items()
        if obj is not None and (why := _reason(context, live, obj, own_mark, is_unseen=own_mark in unseen))
    ]


def _reason(context: Context, live: Object, obj: Object, own_mark: Mark, *, is_unseen: bool) -> str:
    """Return why an object stays; empty if it is deleted, or does not belong to this ModelDeployment."""
    memory, uid = context.memory(key_of(live)), live["metadata"]["uid"]
    if obj["metadata"].get("deletionTimestamp"):
        return ""
    if manifest.has_owner_reference(obj, uid):
        return _other_owners(obj, uid) if is_unseen and not memory.is_orphaning else ""
    if manifest.owner_uid(obj) is None:
        is_ours = context.manager in managed_fields.managers(obj)
        return "nothing on it shows that it was created for this ModelDeployment" if is_ours else ""
    if memory.is_orphaning:
        return ""
    is_ours = manifest.is_owned_by(obj, uid) or memory.admission.recognizes(own_mark, obj)
    return "it has no owner reference to this ModelDeployment" if is_ours else ""


def _other_owners(obj: Object, uid: str) -> str:
    """Return why the garbage collector keeps an object of the ModelDeployment; empty without another owner."""
    others = [owner for owner in obj["metadata"]["ownerReferences"] if owner.get("uid") != uid]
    if not others:
        return ""
    named = first_of([f"{owner.get('kind')} '{owner.get('name')}'" for owner in others])
    return f"it has lost the labels by which the provider finds it, and it has another owner, {named}"


def _marks(context: Context, live: Object) -> set[Mark]:
    """Return kind and name of the main object, and of the helpers that this process knows."""
    main = (context.provider.upstream.kind, key_of(live)[1])
    return {main, *context.memory(key_of(live)).admission.marks}


def _stored(context: Context, live: Object, own_mark: Mark) -> Object | None:
    key = (key_of(live)[0], own_mark[1])
    if own_mark == (context.provider.upstream.kind, key_of(live)[1]):
        return context.upstream.objects.get(key)
    store = context.helpers.stores.get(own_mark[0])
    return store.get(key) if store is not None else None


async def read(context: Context, kind: Kind, key: tuple[str, str]) -> Object | None:
    """Read the object from the API server. Return None if it cannot be read."""
    namespace, name = key
    try:
        return await context.client.get(kind, name, namespace)
    except ApiError:
        return None
