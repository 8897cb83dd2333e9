"""Whether we may do something, asked rather than tried: a refusal would be in the audit log as an attempt."""

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
"""Whoever is let in may create these (Kubernetes' ClusterRole `system:basic-user`)."""


async def may(client: Client, verb: str, kind: Kind, name: str) -> bool:
    """Whether the API server would let us do that to the objects of this name in every namespace.

    Raises ApiError or Unreachable.
    """
    attributes = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    body = {
        "apiVersion": REVIEWS.api_version,
        "kind": REVIEWS.kind,
        "metadata": {},
        "spec": {"resourceAttributes": {**attributes, "verb": verb, "name": name}},
    }
    answer = await client.ask(REVIEWS, body)
    return bool(answer["status"].get("allowed"))
