"""What an account may do, as the API server's own authorizer answers."""

from __future__ import annotations

from typing import Any, Final

from kubefoundry_local.suite import NAMESPACE
from kubefoundry_sdk.api.kinds import Kind
from kubefoundry_sdk.cluster.client import Client

REVIEWS: Final = Kind(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)


async def allowed(api: Client, account: str, verb: str, resource: str, *, namespace: str = "") -> bool:
    """Whether that ServiceAccount of the system namespace may; without a namespace, in all of them.

    resource: `pods`, `pods/log`, `workspaces.kaito.sh`, and where one object is meant `secrets=NAME`.
    """
    kind, _, name = resource.partition("=")
    kind, _, subresource = kind.partition("/")
    plural, _, group = kind.partition(".")
    asked: dict[str, Any] = {
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
            "resourceAttributes": {key: value for key, value in asked.items() if value},
        },
    }
    answer = await api.ask(REVIEWS, review)
    return bool(answer["status"]["allowed"])
