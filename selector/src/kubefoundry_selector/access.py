"""Checks whether the creator of a ModelDeployment may use a provider (docs/policy.md).

The user's own request is over when the selector decides, so the selector asks the API server about the creator that
admission recorded. A provider that the model already has is checked again only if `reselect` asks for a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Final

from kubefoundry_sdk import Client, Object
from kubefoundry_sdk.selector import (
    CREATOR_ANNOTATION,
    CREATOR_GROUPS_ANNOTATION,
    PROVIDER_CONFIGS,
    PROVIDERS_ANNOTATION,
    Kind,
    clip,
)
from kubefoundry_selector.candidate import Provider

REVIEWS: Final = Kind(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
NAMESPACES: Final = Kind("", "v1", "namespaces", "Namespace", namespaced=False)

REMEMBERED: Final = 60.0
"""Seconds for which an answer is used, and after which a model without a provider is checked again. The API server
reports no change of permissions."""

MOST: Final = 4096
"""The most answers that are remembered, each about a creator in a namespace."""

QUOTED: Final = 200
"""Characters of a user's name or of an annotation that a message quotes."""

Denials = Mapping[str, str]
"""Name of a provider -> the reason for which the creator may not use it, empty if that is allowed."""


class Access:
    """The answers of the API server about creators and namespaces.

    Args:
        client: Needs `create` on SubjectAccessReviews and `get` on Namespaces.
        clock: Returns monotonic seconds.
    """

    def __init__(self, client: Client, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._answers: dict[tuple[str, ...], tuple[float, Denials]] = {}

    async def checked(self, live: Object, registered: Sequence[Provider]) -> list[Provider]:
        """Return the providers, each with the reason for which the creator of the model may not use it.

        Raises:
            ApiError: The API server refuses the question.
            Unreachable: The API server does not answer.
        """
        meta = live["metadata"]
        annotations = meta.get("annotations") or {}
        user, groups = annotations.get(CREATOR_ANNOTATION, ""), annotations.get(CREATOR_GROUPS_ANNOTATION, "")
        names = [offered.name for offered in registered]
        key = (meta["namespace"], user, groups, *names)
        checked_at, denials = self._answers.get(key, (-inf, {}))
        if self._clock() - checked_at >= REMEMBERED:
            denials = await self._ask(meta["namespace"], user, groups, names)
            if len(self._answers) >= MOST:
                self._answers.clear()
            self._answers[key] = self._clock(), denials
        return [replace(offered, denied=denials[offered.name]) for offered in registered]

    async def _ask(self, namespace: str, user: str, groups: str, names: Sequence[str]) -> Denials:
        if not user:
            unknown = f"may not be used: the model has no creator in the annotation {CREATOR_ANNOTATION}"
            return dict.fromkeys(names, unknown)
        refused = f"may not be used by user '{clip(user, QUOTED)}' in namespace '{namespace}': "
        meta = (await self._client.get_metadata(NAMESPACES, namespace))["metadata"]
        listed: str | None = (meta.get("annotations") or {}).get(PROVIDERS_ANNOTATION)
        allowed = names if listed is None else [name.strip() for name in listed.split(",")]
        denials = {}
        for name in names:
            denials[name] = ""
            if name not in allowed:
                denials[name] = (
                    f"{refused}annotation {PROVIDERS_ANNOTATION} is '{clip(listed or '', QUOTED)}'"
                )
            elif not await self._is_permitted(namespace, user, groups, name):
                denials[name] = f"{refused}the permission 'use' on {PROVIDER_CONFIGS.crd} '{name}' is missing"
        return denials

    async def _is_permitted(self, namespace: str, user: str, groups: str, provider: str) -> bool:
        attributes = {
            "group": PROVIDER_CONFIGS.group,
            "resource": PROVIDER_CONFIGS.plural,
            "name": provider,
            "namespace": namespace,
            "verb": "use",
        }
        body = {
            "apiVersion": REVIEWS.api_version,
            "kind": REVIEWS.kind,
            "metadata": {},
            "spec": {
                "user": user,
                "groups": [group for group in groups.split("\n") if group],
                "resourceAttributes": attributes,
            },
        }
        review = await self._client.ask(REVIEWS, body)
        return bool(review["status"].get("allowed"))
