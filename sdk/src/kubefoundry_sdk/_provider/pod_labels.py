"""Labels of pods: the label that all providers set, and labels in `spec.podTemplate` that a user cannot set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kubefoundry_sdk._api.names import MODEL_LABEL

MAX_VALUE: Final = 63
"""Longest value of a label in Kubernetes."""

OF_WORKLOADS: Final = (
    "pod-template-hash",
    "controller-revision-hash",
    "pod-template-generation",
    "statefulset.kubernetes.io/",
    "apps.kubernetes.io/",
    "batch.kubernetes.io/",
)
"""Keys, and prefixes that end in a slash or dash, that Kubernetes' own controllers set on pods."""


def with_own(labels: Mapping[str, str], deployment: str) -> dict[str, str]:
    """Return the user's labels with the one that every provider sets on pods: the name of the ModelDeployment.

    The label is omitted if the name is too long for a label value. An upgrade does not add the label to existing
    objects, because only the user's changes reach them (`change.rebase`).
    """
    return {**labels, **({MODEL_LABEL: deployment} if len(deployment) <= MAX_VALUE else {})}


def problems(
    labels: Mapping[str, str],
    title: str,
    own: Iterable[str] = (),
    place: str = "podTemplate.metadata.labels",
) -> list[str]:
    """Return a sentence for each label that the user cannot set.

    Args:
        labels: The user's labels.
        title: The name of the upstream in messages.
        own: Keys, or prefixes as in `OF_WORKLOADS`, that the upstream sets itself.
        place: The user's field that has the labels.
    """
    reserved = (*own, *OF_WORKLOADS)
    return [
        f"KubeFoundry sets pod label {key} itself: remove it from {place}"
        for key in sorted(labels)
        if key == MODEL_LABEL
    ] + [
        f"{title} and Kubernetes set pod label {key} themselves: remove it from {place}"
        for key in sorted(labels)
        if any(key.startswith(prefix) if prefix[-1] in "/-" else key == prefix for prefix in reserved)
    ]
