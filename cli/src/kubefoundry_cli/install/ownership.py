"""Take over the fields of our objects that kubectl has applied."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_cli.cluster import MANAGER, Session
from kubefoundry_cli.edit import guarded
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.errors import FIELD_CONFLICT, ApiError

CLIENT_SIDE: Final = "kubectl-client-side-apply"
"""The field manager of `kubectl apply` without --server-side."""

TAKEN_OVER: Final = frozenset({CLIENT_SIDE, "kubectl"})
"""Field managers of kubectl commands that apply a manifest of ours, or restore an earlier one.

`kubectl rollout undo` sets no manager, so the API server uses the program's name. Other writes stay conflicts: an
administrator's edit or patch has another manager, a scale has a subresource, and the conflict with a server-side
apply has no "using". Such an apply may be an overlay with a purpose: manifests/conversion is applied in this way.
"""

MANAGER_IN_CAUSE: Final = re.compile(
    r'conflict with ("(?:[^"\\]|\\.)*"(?: with subresource "[^"]*")?(?: using)?)'
)
"""The other manager in the message of a cause. Only the message has it: the typed parts of a cause are its reason
and the field (metav1.StatusCause, seen on Kubernetes 1.36). "using" stands for an update; without it, the manager has
applied."""

UPDATES: Final = frozenset(f'"{manager}" using' for manager in TAKEN_OVER)


def is_of_kubectl(error: ApiError) -> bool:
    """Check whether the error is a conflict with managers of kubectl only."""
    causes = [cause for cause in error.details.causes if cause.reason == FIELD_CONFLICT]
    managers = [MANAGER_IN_CAUSE.match(cause.message) for cause in causes]
    return (
        error.conflict
        and bool(managers)
        and all(manager is not None and manager[1] in UPDATES for manager in managers)
    )


async def applied(
    session: Session, kind: Kind, body: Object, *, force: bool, dry_run: bool = False
) -> Object:
    """Apply the object, and take over values of kubectl's managers without `force`. Raises ApiError, Unreachable."""
    try:
        return await session.client.apply(kind, body, manager=MANAGER, force=force, dry_run=dry_run)
    except ApiError as error:
        if not is_of_kubectl(error):
            raise
    return await session.client.apply(kind, body, manager=MANAGER, force=True, dry_run=dry_run)


async def transfer(session: Session, kind: Kind, live: Object) -> None:
    """Take over the fields of client-side apply, so that our apply removes fields that left the manifest.

    Raises ApiError, Unreachable.
    """
    managed = transferred(live)
    if managed is None:
        return
    meta = live["metadata"]
    patch = [*guarded(live), {"op": "replace", "path": "/metadata/managedFields", "value": managed}]
    await session.client.json_patch(kind, meta["name"], meta.get("namespace"), patch, manager=MANAGER)


def transferred(live: Object) -> list[dict[str, Any]] | None:
    """Return managedFields with the entry of client-side apply merged into ours; None if there is no such entry."""
    managed = live["metadata"].get("managedFields") or []
    theirs = [
        entry for entry in managed if entry.get("manager") == CLIENT_SIDE and not entry.get("subresource")
    ]
    if not theirs:
        return None
    merging = [*theirs, *filter(_is_ours, managed)]
    fields: dict[str, Any] = {}
    for entry in merging:
        fields = _merged(fields, entry.get("fieldsV1") or {})
    merged = {**theirs[0], "manager": MANAGER, "operation": "Apply", "fieldsV1": fields}
    return [*(entry for entry in managed if entry not in merging), merged]


def _is_ours(entry: Mapping[str, Any]) -> bool:
    return (entry.get("manager"), entry.get("operation")) == (MANAGER, "Apply")


def _merged(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    return {**left, **{key: _merged(left.get(key, {}), value) for key, value in right.items()}}
