"""Reasons not to write upstream: no usable CRD (contract §4.10), or an object of another owner (contract §4.12)."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from kubefoundry_sdk._api import managed_fields, names, reasons
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider.contract import Deployment, Provider
from kubefoundry_sdk._provider.reconcile import finalizer
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.report import Stop
from kubefoundry_sdk._provider.upstream_kind import UnsupportedSchema
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.helpers import mark
from kubefoundry_sdk._runtime.server_side_apply import NameTaken


def find_conflict(
    context: Context, deployment: Deployment, obj: Object, live: Object | None, *, is_main: bool
) -> Stop | None:
    """Return the condition for a live object of a manifest's name that we may not write, or None."""
    if live is None:
        return None
    named = f"{obj['kind']} '{obj['metadata']['name']}'"
    admission = context.memory((deployment.namespace, deployment.name)).admission
    if admission.recognizes(mark(obj), live) and not live["metadata"].get("deletionTimestamp"):
        # Its uid shows that the object is ours, although it may have lost all other marks.
        return None
    match manifest.ownership(live, name=deployment.name, uid=deployment.uid):
        case "foreign":
            if not is_restored(context, deployment, live):
                taken = NameTaken(named, context.manager in managed_fields.managers(live))
                return name_conflict(taken, deployment.uid)
            # A restored helper is no reason to stop, because it follows its main object.
            if is_main and not is_adoptable(context, deployment, live):
                return other_spec(named)
        case "leaving":
            if manifest.is_left_over(live, name=deployment.name, uid=deployment.uid):
                return left_over(named)
            is_own = manifest.is_owned_by(live, deployment.uid)
            finalizers = finalizer.held_by([live])
            message = f"{named} is being deleted; it will be recreated once it is gone{finalizers}"
            reason = "Recreating" if is_own else "WaitingForCleanup"
            return Stop(reasons.RESOURCE_CREATED, reason, message, failed=False)
        case "ours":
            pass
    return None


def is_restored(context: Context, deployment: Deployment, live: Object) -> bool:
    """Check whether a backup restored an object of ours whose ModelDeployment no longer exists."""
    if not manifest.is_restored(live, name=deployment.name, provider=context.provider.name):
        return False
    uid = manifest.owner_uid(live)
    here = (key for key in context.deployments.keys() if key[0] == deployment.namespace)  # noqa: SIM118
    deployments = (context.deployments.get(key) for key in here)
    return all(obj["metadata"]["uid"] != uid for obj in deployments if obj is not None)


def is_adoptable(context: Context, deployment: Deployment, live: Object) -> bool:
    """Check whether a main object is restored and was applied for the current spec.

    The adoption of such an object restarts nothing.
    """
    record = manifest.applied(live) if is_restored(context, deployment, live) else None
    if record is None:
        return False
    try:
        before = ModelDeploymentSpec.model_validate(record.spec)
    except ValidationError:
        return False
    return before == ModelDeploymentSpec.model_validate(deployment.raw_spec)


def helpers(context: Context, deployment: Deployment, upstream: Object | None) -> list[Object]:
    """Return the live helpers of the ModelDeployment, and those of a restored main object that is to be adopted."""
    live_helpers = context.helpers.of(deployment.namespace, deployment.uid)
    if upstream is None or not is_adoptable(context, deployment, upstream):
        return live_helpers
    restored = context.helpers.of(deployment.namespace, manifest.owner_uid(upstream) or "")
    return [*live_helpers, *(obj for obj in restored if is_restored(context, deployment, obj))]


def left_over(named: str) -> Stop:
    """Return the condition for an object whose owners are all gone (`collection`)."""
    message = (
        f"{named} belongs to an earlier ModelDeployment of this name, which is gone; it will be recreated once the "
        "garbage collector has deleted it"
    )
    return Stop(reasons.RESOURCE_CREATED, "WaitingForCleanup", message, failed=False)


def other_spec(named: str) -> Stop:
    """Return the condition for a restored object that was applied for another spec."""
    message = (
        f"{named} exists and was created for an earlier ModelDeployment of this name with another spec, so it is "
        "left unchanged: restore that spec to adopt it, delete it, or choose another name"
    )
    return Stop(reasons.RESOURCE_CREATED, "NameConflict", message, failed=True)


RETRY_NAME: Final = 30.0
"""Seconds after which to try again to create an object whose name is taken."""


def name_conflict(taken: NameTaken, uid: str) -> Stop:
    """Return the condition for an object whose name is taken by an object that is not known to be ours."""
    message = (
        f"{taken} exists and was not created for this ModelDeployment, so it is left unchanged: "
        "delete it or choose another name"
    )
    if taken.written:
        message = (
            f"{taken} exists, and its owner, labels and annotations do not show that it was created for this "
            "ModelDeployment, so it is left unchanged: delete it, choose another name, or, if it is this model's, "
            f"give it the annotation {names.OWNER_UID_ANNOTATION}={uid}"
        )
    return Stop(reasons.RESOURCE_CREATED, "NameConflict", message, failed=True)


def no_schema(provider: Provider, schema: object) -> Stop:
    """Return the condition for a CRD that is not installed, or lacks fields."""
    if isinstance(schema, UnsupportedSchema):
        message = (
            f"CRD {provider.upstream.crd} lacks {', '.join(schema.missing)}; "
            f"ask an administrator to install a {provider.title} version that this provider supports"
        )
        return Stop(reasons.RESOURCE_CREATED, "UnsupportedSchema", message, failed=False)
    message = (
        f"Provider '{provider.name}' CRD not installed in cluster; ask an administrator to install the "
        f"{provider.title} operator"
    )
    return Stop(reasons.RESOURCE_CREATED, "CRDNotInstalled", message, failed=False)
