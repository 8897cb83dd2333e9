"""Checks a permission instead of trying it: the refusal would be in the audit log as an attempt."""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk.api.kinds import Kind
from kubefoundry_sdk.cluster.client import Client

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
    """Whether the API server would permit the verb on the object of this name, on all if it is empty, and in all
    namespaces if none is given.

    Raises ApiError or Unreachable.
    """
    asked = {
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
        "spec": {"resourceAttributes": {key: value for key, value in asked.items() if value}},
    }
    answer = await client.ask(REVIEWS, body)
    return bool(answer["status"].get("allowed"))
