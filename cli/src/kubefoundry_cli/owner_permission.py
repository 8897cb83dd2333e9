"""Name the permission that the API server demands of whoever changes the owner of an object.

Its plugin OwnerReferencesPermissionEnforcement demands more than `patch`, and its message names neither the
permission nor the user (seen on Kubernetes 1.26 and 1.36).
"""

from __future__ import annotations

from typing import Final

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.permission import REFUSAL, ask_for_edit
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.permission import may

DEMANDS: Final = ("cannot set blockOwnerDeletion", "cannot set an ownerRef on a resource you can't delete")
"""The plugin's messages (apiserver, plugin/pkg/admission/gc)."""

USERS: Final = Kind(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)
"""Returns the caller's name. Kubernetes 1.28 and newer serve it."""


async def failure(session: Session, error: ApiError | Unreachable, kind: Kind, doing: str) -> Failure:
    """Return the failure to change an object, with the permission that is missing for a change of its owner.

    Args:
        session: The cluster.
        error: The API server's answer to the change.
        kind: The kind of the object.
        doing: The failed action after "cannot".
    """
    if not isinstance(error, ApiError) or error.code != 403:
        return of(error, doing)
    if not any(demand in error.message for demand in DEMANDS):
        return of(error, doing)
    needed = (("update", MODEL_DEPLOYMENTS, "finalizers"), ("delete", kind, ""))
    try:
        missing = [
            f"{verb} {of_kind.plural}{subresource and f'/{subresource}'}"
            for verb, of_kind, subresource in needed
            if not await may(
                session.client, verb, of_kind, namespace=session.namespace, subresource=subresource
            )
        ]
        user = await _user(session)
    except (ApiError, Unreachable):
        return of(error, doing)
    if not missing:
        return of(error, doing)
    return Failure(
        f"cannot {doing}: you may not {' and '.join(missing)} in namespace {session.namespace}, which the API server "
        f"demands of whoever changes an owner; {ask_for_edit(user, session.namespace)}",
        Exit.FORBIDDEN,
    )


async def _user(session: Session) -> str:
    """Return the caller's name, USER on a cluster that does not tell it. Raises ApiError, Unreachable.

    Kubernetes 1.26 permits this request to nobody but administrators, and its refusal names the caller.
    """
    body = {"apiVersion": USERS.api_version, "kind": USERS.kind, "metadata": {}}
    try:
        review = await session.client.ask(USERS, body)
    except ApiError as error:
        if refusal := REFUSAL.search(error.message):
            return refusal["user"]
        if not error.not_found:
            raise
        return "USER"
    return str(review["status"]["userInfo"]["username"])
