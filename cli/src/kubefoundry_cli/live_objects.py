"""Read the live upstream objects of a ModelDeployment, as its provider does before it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import Failure
from kubefoundry_cli.providers import installed
from kubefoundry_sdk._api.engine_choice import with_engine
from kubefoundry_sdk._api.handover import holders
from kubefoundry_sdk._api.kinds import HELPER_KINDS, Kind, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._api.managed_fields import managers
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._api.names import provider_manager
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.reconcile import preconditions
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.helpers import kind_of, mark, marked, whole
from kubefoundry_sdk._runtime.server_side_apply import NameTaken


@dataclass(frozen=True, slots=True)
class HandOver:
    """A change of the provider.

    Attributes:
        from_: The provider that serves.
        to: The provider that takes over.
        created: Objects that `to` creates, as `Kind 'name'`.
        deleted: Objects of `from_`, deleted once `to` can take over.
    """

    from_: str
    to: str
    created: tuple[str, ...]
    deleted: tuple[str, ...]


async def live_of(session: Session, kind: Kind, obj: Object) -> Object | None:
    """Return the upstream object of the ModelDeployment, None if it does not exist or is about to be deleted.

    Raises:
        Failure: The object of that name does not belong to the ModelDeployment, or was applied for another spec. The
            provider would not write to it.
        ApiError: The object cannot be read.
    """
    meta = obj["metadata"]
    try:
        live = await session.client.get(kind, meta["name"], meta["namespace"])
    except ApiError as error:
        if error.not_found:
            return None
        raise
    whose = manifest.ownership(live, name=meta["name"], uid=meta["uid"])
    if whose == "foreign" and _is_restored(live, obj):
        if not _is_applied_for(live, obj):
            raise Failure(preconditions.other_spec(f"{kind.kind} '{meta['name']}'").message)
        return live
    if whose == "foreign":
        raise Failure(
            f"{kind.kind} '{meta['name']}' exists in namespace {meta['namespace']} and is not this "
            "ModelDeployment's: rename the ModelDeployment, or delete that object"
        )
    return live if whose == "ours" else None


async def helpers_of(session: Session, provider: Provider, obj: Object) -> list[Object]:
    """Return the helpers of the ModelDeployment that the provider created. Raises ApiError."""
    meta, helpers = obj["metadata"], []
    for name in provider.helper_kinds:
        kind = HELPER_KINDS[name]
        listed, _ = await session.client.list(
            kind, meta["namespace"], selector=manifest.selector(provider.name)
        )
        helpers += [whole(kind, helper) for helper in listed if manifest.owner_uid(helper) == meta["uid"]]
    return helpers


async def check_helper_names(
    session: Session, provider: Provider, obj: Object, helpers: Sequence[Object], existing: Sequence[Object]
) -> list[str]:
    """Check the names of the helpers to create, and return notes about names that may not be free.

    Args:
        session: The cluster.
        provider: The provider that would apply them.
        obj: The ModelDeployment.
        helpers: The helpers that the provider would apply.
        existing: The live helpers of the ModelDeployment.

    Raises:
        Failure: An object of another owner has the name of a helper, so nothing would be written.
        ApiError: A helper cannot be read for another reason than a missing permission.
    """
    meta, notes, existing_marks = obj["metadata"], [], marked(existing)
    for helper in helpers:
        if mark(helper) in existing_marks:
            continue
        named = f"{helper['kind']} '{helper['metadata']['name']}'"
        try:
            live = await session.client.get(kind_of(helper), helper["metadata"]["name"], meta["namespace"])
        except ApiError as error:
            if error.code == 403:
                notes.append(f"{named} cannot be read ({error.message}): whether the name is free is unknown")
            elif not error.not_found:
                raise
            continue
        whose = manifest.ownership(live, name=meta["name"], uid=meta["uid"])
        if whose == "foreign" and not _is_restored(live, obj):
            taken = NameTaken(named, provider_manager(provider.name) in managers(live))
            raise Failure(preconditions.name_conflict(taken, meta["uid"]).message)
        if whose == "leaving":
            is_deleted = live["metadata"].get("deletionTimestamp")
            state = "is being deleted" if is_deleted else "belongs to an earlier ModelDeployment of this name"
            notes.append(f"{named} {state}: nothing is created before it is gone")
    return notes


async def hand_over(
    session: Session, obj: Object, provider: Provider, created: Sequence[Object]
) -> HandOver | None:
    """Return the objects that change if another provider still serves the ModelDeployment, None if none does.

    Args:
        session: The cluster.
        obj: The ModelDeployment.
        provider: The provider that takes over.
        created: The objects that the provider would apply, the main object last.

    Raises:
        ApiError: The helpers of the other provider cannot be listed for another reason than a missing permission.
    """
    serving = next((name for name in holders(obj) if name != provider.name), None)
    if serving is None:
        return None
    status = LiveModelDeployment(obj).provider
    package = installed().get(serving)
    kind = package.upstream.kind if package else status.get("resourceKind")
    deleted = [f"{kind} '{status.get('resourceName') or obj['metadata']['name']}'"] if kind else []
    if package is not None:
        deleted += map(_named, await _visible_helpers(session, package, obj))
    return HandOver(serving, provider.name, tuple(map(_named, reversed(created))), tuple(deleted))


async def _visible_helpers(session: Session, provider: Provider, obj: Object) -> list[Object]:
    """Return the helpers, none if the caller may not list them."""
    try:
        return await helpers_of(session, provider, obj)
    except ApiError as error:
        if error.code != 403:
            raise
        return []


def _named(obj: Object) -> str:
    return f"{obj['kind']} '{obj['metadata']['name']}'"


def _is_restored(live: Object, obj: Object) -> bool:
    provider = (live["metadata"].get("labels") or {}).get(manifest.PROVIDER_LABEL, "")
    return manifest.is_restored(live, name=obj["metadata"]["name"], provider=provider)


def _is_applied_for(live: Object, obj: Object) -> bool:
    """Check whether the object was applied for this spec, so that its provider adopts it."""
    record = manifest.applied(live)
    if record is None:
        return False
    engine = LiveModelDeployment(obj).requested_engine or record.engine
    spec = with_engine(obj["spec"], engine) if engine else obj["spec"]
    try:
        before = ModelDeploymentSpec.model_validate(record.spec)
    except ValidationError:
        return False
    return before == ModelDeploymentSpec.model_validate(spec)
