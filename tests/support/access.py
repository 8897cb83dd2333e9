"""Ask the API server's authorizer about the rights of an account."""

from __future__ import annotations

from typing import Any, Final

from kubefoundry_local.suite import NAMESPACE
from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._cluster.client import Client

REVIEWS: Final = Kind(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)


async def allowed(api: Client, account: str, verb: str, resource: str, *, namespace: str = "") -> bool:
    """Check whether a ServiceAccount of the system namespace has a right.

    Args:
        api: A client with the rights of an administrator.
        account: Name of the ServiceAccount.
        verb: An RBAC verb.
        resource: `pods`, `pods/log` or `workspaces.kaito.sh`; `secrets=NAME` for a single object.
        namespace: The namespace of the objects, empty for all namespaces.
    """
    kind, _, name = resource.partition("=")
    kind, _, subresource = kind.partition("/")
    plural, _, group = kind.partition(".")
    attributes: dict[str, Any] = {
        "namespace": namespace,
        "verb": verb,
        "group": group,
        "resource": plural,
        "subresource": subresource,
        "name": name,
    }
    review = {
        "apiVersion": REVIEWS.api_version,
        "kind": REVIEWS.kind,
        "metadata": {},
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:{account}",
            "groups": [
                "system:serviceaccounts",
                f"system:serviceaccounts:{NAMESPACE}",
                "system:authenticated",
            ],
            "resourceAttributes": {key: value for key, value in attributes.items() if value},
        },
    }
    response = await api.ask(REVIEWS, review)
    return bool(response["status"]["allowed"])
