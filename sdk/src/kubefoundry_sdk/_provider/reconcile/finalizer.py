"""The provider's finalizer on a ModelDeployment, and the clean-up that it guarantees (contract §4.3, §4.6, §4.17)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from kubefoundry_sdk._api import managed_fields, names
from kubefoundry_sdk._api.conditions import first_of
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.write import apply, manifest
from kubefoundry_sdk._provider.write.helpers import Helpers, kind_of
from kubefoundry_sdk._runtime import backoff, repairs
from kubefoundry_sdk._runtime.refusals import (
    Obstacle,
    PendingRefusal,
    Refused,
    may_pass,
    obstacle,
    remedy,
)
from kubefoundry_sdk._runtime.server_side_apply import delete
from kubefoundry_sdk._runtime.store import Store, key_of

log = logging.getLogger(__name__)

ORPHAN: Final = "orphan"
"""Finalizer of a deletion that orphans its dependents (metav1.FinalizerOrphanDependents): `--cascade=orphan`."""

OF_KUBERNETES: Final = frozenset({ORPHAN, "foregroundDeletion"})
"""Finalizers that the garbage collector removes."""


def has(deployment: Object, provider: str) -> bool:
    """Check whether the ModelDeployment has the provider's finalizer."""
    return names.provider_finalizer(provider) in (deployment["metadata"].get("finalizers") or ())


def owns_result(deployment: Object, provider: str) -> bool:
    """Check whether the ModelDeployment carries a dry-run result that we wrote."""
    fields = managed_fields.owned(deployment, names.provider_manager(provider)) or {}
    return "f:annotations" in fields.get("f:metadata", {})


async def own(context: Context, deployment: Object, *, hold: bool, dry_run_result: str | None) -> None:
    """Make the finalizer and the dry-run result the only fields of the ModelDeployment that the provider owns.

    Sends no request if this is already so. The server-side apply carries the uid, so that it does not write to a
    recreated ModelDeployment.

    Raises:
        Refused: Somebody else uses our field manager, the API server refuses the fields or stores others, or
            somebody keeps removing them.
        ApiError: A transient error.
    """
    meta = deployment["metadata"]
    provider = context.provider.name
    metadata: Object = {}
    if hold:
        metadata["finalizers"] = [names.provider_finalizer(provider)]
    if dry_run_result is not None:
        metadata["annotations"] = {names.DRY_RUN_RESULT_ANNOTATION: dry_run_result}
    fields = managed_fields.owned(deployment, context.manager) or {}
    # Ignore `f:status`: an apply to the object cannot write or remove its status, so such an entry is forged.
    if foreign := sorted(set(fields) - {"f:metadata", "f:status"}):
        # Our apply does not contain those fields, so it would remove them.
        raise Refused(
            f"Field manager {context.manager} belongs to the provider, but somebody has applied "
            f"{', '.join(name.removeprefix('f:') for name in foreign)} under it: apply under another name, and "
            "remove its entry from metadata.managedFields"
        )
    if _is_applied(deployment, provider, hold, dry_run_result):
        return
    body: Object = {
        "apiVersion": names.API_VERSION,
        "kind": names.MODEL_DEPLOYMENT,
        "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"], **metadata},
    }
    await _apply(context, deployment, body, f"{meta['uid']} {hold} {dry_run_result}")


def _is_applied(deployment: Object, provider: str, hold: bool, dry_run_result: str | None) -> bool:
    """Check whether the ModelDeployment has exactly the fields that `own` would apply."""
    annotations = deployment["metadata"].get("annotations") or {}
    return (
        has(deployment, provider) == hold
        and owns_result(deployment, provider) == (dry_run_result is not None)
        and (dry_run_result is None or annotations.get(names.DRY_RUN_RESULT_ANNOTATION) == dry_run_result)
    )


async def _apply(context: Context, deployment: Object, body: Object, digest: str) -> None:
    """Apply our fields, unless that was refused a moment ago or somebody keeps removing them.

    `digest` is a text that identifies the fields. Raises as `own`.
    """
    memory = context.memory(key_of(deployment))
    refusal, now = memory.finalizer, asyncio.get_running_loop().time()
    fields = _describe(body)
    if pending := refusal.pending(digest, now):
        raise _as_error(pending)
    if digest == memory.held and (wait := memory.restored.wait(now)):
        raise Refused(
            f"Somebody keeps removing {fields}: added {repairs.LIMIT} times in {repairs.WINDOW / 60:.0f} minutes, "
            "now left alone for a while; look for the controller that removes it",
            wait,
        )
    try:
        stored = await context.client.apply(MODEL_DEPLOYMENTS, body, manager=context.manager)
    except ApiError as error:
        # A 403 of the API server itself may pass: it has just started and has not loaded its roles yet.
        if not error.rejected or (error.code == 403 and obstacle(error) is not Obstacle.POLICY):
            raise
        advice = remedy(error, apply.ORIGIN)
        words = f"{fields} was refused: {error.message}; {advice.text}"
        pending = refusal.remember(digest, now, Refused(words, advice.retry, may_pass=may_pass(error)))
        raise _as_error(pending) from error
    context.deployments.put(stored)
    metadata = body["metadata"]
    is_stored = set(metadata.get("finalizers", ())) <= set(stored["metadata"].get("finalizers") or ()) and (
        metadata.get("annotations", {}).items() <= (stored["metadata"].get("annotations") or {}).items()
    )
    if not is_stored:
        refused = Refused(
            f"{fields} was accepted but not stored: an admission webhook or policy removes it; "
            "exempt ModelDeployments from that"
        )
        refusal.remember(digest, now, refused)
        raise refused
    if digest == memory.held:
        memory.restored.note(now)
    memory.held = digest
    refusal.reset()


def _describe(body: Object) -> str:
    """Return the fields of the body, for the user."""
    metadata = body["metadata"]
    fields = [f"finalizer {name}" for name in metadata.get("finalizers", ())]
    fields += [f"annotation {name}" for name in metadata.get("annotations", ())]
    text = " and ".join(fields) or "the removal of our fields"
    return f"{text[0].upper()}{text[1:]} of ModelDeployment '{metadata['name']}'"


def check(context: Context, deployment: Object) -> None:
    """Raise Refused if our fields were refused and the retry is not due, because no dry-run result can be stored."""
    now = asyncio.get_running_loop().time()
    if pending := context.memory(key_of(deployment)).finalizer.latest(now):
        raise _as_error(pending)


def _as_error(pending: PendingRefusal) -> Refused:
    return Refused(pending.text, pending.left, may_pass=pending.is_transient)


async def restore(context: Context, deployment: Object) -> float | None:
    """Restore our finalizer if somebody removed it while our object exists. Send no request if it is present.

    The reconcile continues even if the write fails. Return the seconds until the next attempt, or None.
    """
    if has(deployment, context.provider.name):
        return None
    annotations = deployment["metadata"].get("annotations") or {}
    ours = owns_result(deployment, context.provider.name)
    result = annotations.get(names.DRY_RUN_RESULT_ANNOTATION) if ours else None
    try:
        await own(context, deployment, hold=True, dry_run_result=result)
    except Refused as refused:
        if not refused.may_pass:
            context.recorder.event(deployment, "Warning", "WriteRejected", str(refused))
        return refused.retry
    except ApiError as error:
        words = f"The finalizer could not be written: {error}"
        transient = Refused(words, backoff.FAULT_DELAY, may_pass=True)
        now = asyncio.get_running_loop().time()
        digest = f"{deployment['metadata']['uid']} {True} {result}"
        return context.memory(key_of(deployment)).finalizer.remember(digest, now, transient).left
    return None


async def remove(client: Client, store: Store, deployment: Object, finalizer: str, *, manager: str) -> None:
    """Remove the finalizer by a JSON patch that tests uid and resource version.

    An apply would not remove a finalizer that another manager also owns (contract §4.3).

    Raises:
        ApiError: The object has changed (conflict, or Invalid from the test): decide again then.
    """
    meta = deployment["metadata"]
    finalizers = meta.get("finalizers") or []
    if finalizer not in finalizers:
        # Somebody else removed it meanwhile, such as `kubefoundry eject`.
        return
    operations = [
        {"op": "test", "path": "/metadata/uid", "value": meta["uid"]},
        {"op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]},
        {"op": "remove", "path": f"/metadata/finalizers/{finalizers.index(finalizer)}"},
    ]
    try:
        store.put(
            await client.json_patch(
                MODEL_DEPLOYMENTS, meta["name"], meta["namespace"], operations, manager=manager
            )
        )
    except ApiError as error:
        if error.not_found:
            return
        if error.outdated:
            raise ApiError(409, "Conflict", error.message) from error
        raise


def holding(context: Context, deployment: Object) -> str:
    """Return the finalizers that delay the deletion of the ModelDeployment's objects, in the form of `held_by`."""
    meta = deployment["metadata"]
    main = context.upstream.objects.get(key_of(deployment))
    objects = [*([main] if main else []), *context.helpers.of(meta["namespace"], meta["uid"])]
    return held_by([obj for obj in objects if manifest.is_owned_by(obj, meta["uid"])])


def held_by(objects: Sequence[Object]) -> str:
    """Return one clause about the finalizers that delay the deletion of objects, or an empty string.

    Finalizers of Kubernetes are left out, because the garbage collector removes them.
    """
    finalizers = list(
        dict.fromkeys(
            name
            for obj in objects
            if obj["metadata"].get("deletionTimestamp")
            for name in obj["metadata"].get("finalizers") or ()
            if name not in OF_KUBERNETES
        )
    )
    return f"; held by finalizer {first_of(finalizers)}" if finalizers else ""


async def clean_up(
    client: Client,
    deployment: Object,
    kind: Kind | None,
    objects: Store,
    helpers: Helpers,
    manager: str | None = None,
    *,
    spared: Callable[[Object], bool] = lambda helper: False,
) -> list[str]:
    """Request deletion of the upstream objects of this ModelDeployment.

    While the ModelDeployment is being deleted, only objects with its ownerReference are deleted. No deletion is
    requested while the garbage collector may still remove the reference, so that objects keep running after
    `--cascade=orphan`. If the CRD is not installed, `kind` is None, and no main object exists.

    Args:
        client: The client.
        deployment: The ModelDeployment.
        kind: The kind of the main object.
        objects: The store of main objects.
        helpers: The stores of helpers.
        manager: The provider's field manager, if the ModelDeployment stays and the provider gives it up. Then all
            objects that the manager created for it are deleted, also those without an ownerReference.
        spared: Checks whether a helper belongs to another ModelDeployment.

    Returns:
        The names of the objects that still exist.
    """
    meta = deployment["metadata"]
    # Ignore the orphan finalizer on a ModelDeployment that stays, because anybody may have added it.
    if manager is None and ORPHAN in meta.get("finalizers", ()):
        return []

    has_finalizer = manager is not None and has(deployment, manager.removesuffix(names.provider_manager("")))

    def is_deletable(obj: Object) -> bool:
        if manager:
            return manifest.is_created_by(obj, meta["uid"], manager, has_finalizer=has_finalizer)
        return manifest.has_owner_reference(obj, meta["uid"])

    # Pass the check to the deletion, because someone may orphan the object before the request is sent.
    ours = None if manager else is_deletable
    left = []
    live = objects.get((meta["namespace"], meta["name"])) if kind else None
    if kind and live and is_deletable(live):
        left.append(f"{kind.kind} {meta['namespace']}/{meta['name']}")
        if not live["metadata"].get("deletionTimestamp"):
            await apply.remove_main(client, kind, live, ours=ours)
    for obj in helpers.of(meta["namespace"], meta["uid"]):
        if is_deletable(obj) and not spared(obj):
            left.append(f"{obj['kind']} {meta['namespace']}/{obj['metadata']['name']}")
            if not obj["metadata"].get("deletionTimestamp"):
                await delete(client, kind_of(obj), obj, ours=ours)
    return left
