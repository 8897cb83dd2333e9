"""Eject a model: its upstream objects stay as they are, and no ModelDeployment owns them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

from kubefoundry_cli import owner_permission
from kubefoundry_cli.cluster import MANAGER, Session
from kubefoundry_cli.edit import TRIES, Operations, guarded, guarded_patch, write
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.health import provider_of
from kubefoundry_cli.hint import hint, kubectl
from kubefoundry_cli.install import change
from kubefoundry_cli.operations import paused
from kubefoundry_cli.providers import named, silence
from kubefoundry_cli.suspension import deletion
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.handover import finalizing, holders
from kubefoundry_sdk._api.kinds import CRDS, HELPER_KINDS, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.watch.upstream import addressed
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.helpers import whole

SECONDS: Final = 60.0
"""Seconds to wait for a provider's report of a pause, and for the deletion of a model without finalizers."""

LABELS: Final = (names.MANAGED_BY_LABEL, names.MODEL_SOURCE_LABEL, manifest.PROVIDER_LABEL)
ANNOTATIONS: Final = (names.OWNER_UID_ANNOTATION, *manifest.RECORD)


class TooLate(Failure):
    """The ModelDeployment is deleted, or is being deleted with its objects: another try would not help."""


async def owned_objects(session: Session, obj: Object) -> list[tuple[Kind, Object]]:
    """Return the upstream objects of a ModelDeployment, its main one last. Raises Failure if some are unknown."""
    meta, status = obj["metadata"], LiveModelDeployment(obj).provider
    name = _writer(obj)
    where = f"ModelDeployment '{meta['name']}' in namespace {meta['namespace']}"
    others = sorted(set(holders(obj)) - {name})
    if others:
        raise Failure(
            f"{where} is being handed over from provider {', '.join(others)}: eject it when that is over; "
            f"{hint('status ' + meta['name'])}"
        )
    if text := deletion(obj):
        raise TooLate(f"{where} {text}. What it owns is deleted with it: too late to eject it")
    if name is None:
        raise Failure(f"{where} has nothing upstream that could stay; {_delete(meta)}")
    provider = named(name)
    kind = await _kind(session, provider, obj)
    try:
        objects = await _helpers(session, provider, meta)
        main_name = str(status.get("resourceName") or meta["name"])
        main = await session.client.get(kind, main_name, meta["namespace"])
    except (ApiError, Unreachable) as error:
        if isinstance(error, ApiError) and error.not_found:
            raise Failure(f"{where} has no {kind.kind} that could stay; {_delete(meta)}") from error
        raise of(error, f"read what ModelDeployment '{meta['name']}' has upstream") from error
    if not manifest.is_owned_by(main, meta["uid"]):
        raise Failure(
            f"{kind.kind} '{main['metadata']['name']}' is not of {where}, so it stays anyway; {_delete(meta)}"
        )
    return [*objects, (kind, whole(kind, main))]


async def _helpers(
    session: Session, provider: Provider, meta: Mapping[str, Any]
) -> list[tuple[Kind, Object]]:
    objects = []
    for kind in map(HELPER_KINDS.__getitem__, provider.helper_kinds):
        selector = manifest.selector(provider.name)
        helpers, _ = await session.client.list(kind, meta["namespace"], selector=selector)
        objects += [(kind, whole(kind, item)) for item in helpers if manifest.owner_uid(item) == meta["uid"]]
    return objects


def _writer(obj: Object) -> str | None:
    """Return the provider that the status names, or else the spec; None if none is chosen."""
    return provider_of(obj) or LiveModelDeployment(obj).requested_provider


async def _kind(session: Session, provider: Provider, obj: Object) -> Kind:
    """Return the kind of the main object as the status reports it, or else as the cluster serves it.

    A model that is paused since its import, or has lost its status, may own an object that it does not report.

    Raises:
        Failure: No such object can exist, or its CRD cannot be read.
    """
    upstream = provider.upstream
    version = str(LiveModelDeployment(obj).provider.get("resourceAPIVersion") or "")
    if "/" not in version:
        version = upstream.version or await _served_version(session, upstream.crd) or ""
    if not version:
        meta = obj["metadata"]
        raise Failure(
            f"ModelDeployment '{meta['name']}' in namespace {meta['namespace']} has no {upstream.kind} that could "
            f"stay; {_delete(meta)}"
        )
    return upstream.served(version)


async def _served_version(session: Session, crd: str) -> str | None:
    """Return the version through which objects of the CRD are read, None if it is not installed. Raises Failure."""
    try:
        return addressed(await session.client.get(CRDS, crd), None, None)
    except (ApiError, Unreachable) as error:
        if isinstance(error, ApiError) and error.not_found:
            return None
        raise of(error, f"read CRD {crd}") from error


def _delete(meta: Object) -> str:
    """Return the command that deletes the ModelDeployment."""
    return kubectl(f"delete modeldeployment {meta['name']}", meta["namespace"])


async def eject(session: Session, obj: Object, seconds: float = SECONDS) -> None:
    """Pause the ModelDeployment, remove marks and owner from its objects, then delete it.

    A provider that has seen the pause no longer restores the marks. The main object is released last: until then the
    same command can be run again.

    Args:
        session: The cluster.
        obj: The ModelDeployment, for which `owned_objects` has found the objects that stay.
        seconds: The longest wait for the provider's report of the pause.

    Raises:
        Failure: The model cannot be ejected. Nothing is released before the provider has reported the pause.
    """
    meta, provider = obj["metadata"], str(_writer(obj))
    name = meta["name"]
    if pausing := paused(obj):
        # Wait until the report of an earlier pause is gone, so that it is not mistaken for the report of this one.
        await _reported(session, meta, provider, seconds, is_paused=False)
        await write(session, obj, pausing, f"pause ModelDeployment '{name}'")
    try:
        held = await _reported(session, meta, provider, seconds, is_paused=True)
        # Read the objects after the report: the provider may have written until it saw the pause.
        for kind, live in await owned_objects(session, held):
            await _release(session, kind, live, meta["uid"], names.provider_manager(provider))
    except TooLate:
        raise
    except Failure as failure:
        raise Failure(
            f"{failure.message}; ModelDeployment '{name}' is paused: eject it again, or "
            f"{hint('resume ' + name, meta['namespace'])}",
            Exit(failure.exit_code),
        ) from failure
    await remove(session, meta)


async def _reported(
    session: Session, meta: Mapping[str, Any], provider: str, seconds: float, *, is_paused: bool
) -> Object:
    """Wait until the status reports the pause, or no longer reports it, and return the model. Raises Failure.

    Do not wait for a missing or silent provider. When it starts, it sees the pause before anything else.
    """
    name, namespace = meta["name"], meta["namespace"]

    def holds(now: Object | None) -> bool:
        return (
            now is None
            or (LiveModelDeployment(now).status.get("message") == names.PAUSED_MESSAGE) == is_paused
        )

    try:
        if await _is_silent(session, provider):
            return await session.client.get(MODEL_DEPLOYMENTS, name, namespace)
        reached, last = await change.until(session, MODEL_DEPLOYMENTS, namespace, name, holds, seconds)
    except (ApiError, Unreachable) as error:
        raise of(error, f"watch ModelDeployment '{name}'") from error
    if not reached:
        raise Failure(
            f"nothing is released: in {seconds:.0f} s, provider {provider} has not reported that "
            f"ModelDeployment '{name}' is {'paused' if is_paused else 'resumed'}; {hint('controller status')}",
            Exit.TIMEOUT,
        )
    if last is None or last["metadata"]["uid"] != meta["uid"]:
        raise TooLate(f"ModelDeployment '{name}' was deleted meanwhile: too late to eject it")
    return last


async def _is_silent(session: Session, provider: str) -> bool:
    """Check whether the provider is not registered, or has stopped reporting. Raises Unreachable."""
    try:
        return silence(await session.client.get(PROVIDER_CONFIGS, provider)) is not None
    except ApiError as error:
        # A caller who may not read registrations waits for the report.
        return error.not_found


async def _release(session: Session, kind: Kind, live: Object, uid: str, manager: str) -> None:
    """Release the object, and name it in a failure. Raises Failure."""
    try:
        await release(session, kind, live, uid, manager)
    except (ApiError, Unreachable) as error:
        doing = f"release {kind.kind} '{live['metadata']['name']}'"
        raise await owner_permission.failure(session, error, kind, doing) from error


async def release(session: Session, kind: Kind, live: Object, uid: str, manager: str) -> None:
    """Remove owner, marks and field manager of the ModelDeployment from its object. Raises ApiError, Unreachable."""
    await guarded_patch(session, kind, live, lambda now: released(now, uid, manager))


def released(live: Object, uid: str, manager: str) -> Operations:
    """Return the operations that remove our owner, marks and field manager, and leave the content alone."""
    meta = live["metadata"]
    metadata: dict[str, Any] = {
        "ownerReferences": _others(meta.get("ownerReferences"), "uid", uid),
        "labels": _without(meta.get("labels"), LABELS),
        "annotations": _without(meta.get("annotations"), ANNOTATIONS),
        # An empty list would not change the field (Kubernetes: server-side apply, "clearing managedFields").
        "managedFields": _others(meta.get("managedFields"), "manager", manager) or [{}],
    }
    return [
        {"op": "replace", "path": f"/metadata/{part}", "value": value}
        for part, value in metadata.items()
        if part in meta and meta[part] != value
    ]


def _others(items: Sequence[Object] | None, field: str, value: str) -> list[Object]:
    return [item for item in items or () if item.get(field) != value]


def _without(values: Mapping[str, Any] | None, keys: Container[str]) -> Object:
    return {key: value for key, value in (values or {}).items() if key not in keys}


async def remove(session: Session, meta: Mapping[str, Any]) -> None:
    """Delete a ModelDeployment that owns nothing any more, and wait until it is gone. Raises Failure.

    Our finalizers are removed, because they protect nothing. The finalizer of `Orphan` stays until the garbage
    collector has handled it.
    """
    name, namespace = meta["name"], meta["namespace"]
    try:
        # Orphan: a controller that still owns an object does not delete it (contract §4.3).
        await session.client.delete(MODEL_DEPLOYMENTS, name, namespace, uid=meta["uid"], propagation="Orphan")
        await _remove_finalizers(session, meta)
        await change.gone(session, MODEL_DEPLOYMENTS, namespace, name, SECONDS)
    except (ApiError, Unreachable) as error:
        if not (isinstance(error, ApiError) and error.not_found):
            raise of(error, f"delete ModelDeployment '{name}'") from error


async def _remove_finalizers(session: Session, meta: Mapping[str, Any]) -> None:
    """Remove our finalizers from a ModelDeployment that is being deleted. Raises ApiError, Unreachable."""
    name, namespace = meta["name"], meta["namespace"]
    for _ in range(TRIES):
        current = await session.client.get(MODEL_DEPLOYMENTS, name, namespace)
        held = {names.provider_finalizer(provider) for provider in finalizing(current)}
        if current["metadata"]["uid"] != meta["uid"] or not held:
            return
        left = [finalizer for finalizer in current["metadata"]["finalizers"] if finalizer not in held]
        operations = [*guarded(current), {"op": "replace", "path": "/metadata/finalizers", "value": left}]
        try:
            await session.client.json_patch(MODEL_DEPLOYMENTS, name, namespace, operations, manager=MANAGER)
        except ApiError as error:
            if not error.conflict:
                raise
        else:
            return
