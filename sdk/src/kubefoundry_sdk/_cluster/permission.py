"""Checks a permission by a SelfSubjectAccessReview, because a refused request would be in the audit log."""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._cluster.client import Client

REVIEWS: Final = Kind(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    namespaced=False,
)
"""Every authenticated user may create these (Kubernetes' ClusterRole `system:basic-user`)."""


async def may(
    client: Client, verb: str, kind: Kind, name: str = "", *, namespace: str = "", subresource: str = ""
) -> bool:
    """Ask the API server whether it would permit the verb. Raise ApiError or Unreachable.

    Args:
        client: The client whose rights count.
        verb: The verb of the request.
        kind: The kind.
        name: The object's name; empty for all objects.
        namespace: The namespace; empty for all namespaces.
        subresource: The subresource, if any.
    """
    attributes = {
        "group": kind.group,
        "version": kind.version,
        "resource": kind.plural,
        "verb": verb,
        "name": name,
        "namespace": namespace,
        "subresource": subresource,
    }
    body = {
        "apiVersion": REVIEWS.api_version,
        "kind": REVIEWS.kind,
        "metadata": {},
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    review = await client.ask(REVIEWS, body)
    return bool(review["status"].get("allowed"))
