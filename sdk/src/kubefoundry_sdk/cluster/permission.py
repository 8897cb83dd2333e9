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


async def may(
    client: Client, verb: str, kind: Kind, name: str = "", *, namespace: str = "", subresource: str = ""
) -> bool:
    """Whether the API server would let us do that to the objects of this name, to all where it is empty; in every
    namespace where none is given.

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
