"""Labels of `spec.podTemplate` that would not reach a pod, because upstream or Kubernetes writes them itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

OF_WORKLOADS: Final = (
    "pod-template-hash",
    "controller-revision-hash",
    "pod-template-generation",
    "statefulset.kubernetes.io/",
    "apps.kubernetes.io/",
    "batch.kubernetes.io/",
)
"""Keys, and beginnings of keys that end in a slash or dash, that Kubernetes' own controllers write on pods."""


def problems(labels: Mapping[str, str], title: str, own: Iterable[str] = ()) -> list[str]:
    """A sentence for each label that cannot be the user's. title: how messages call the upstream; own: keys, or
    beginnings as in `OF_WORKLOADS`, that it writes itself."""
    written = (*own, *OF_WORKLOADS)
    return [
        f"{title} and Kubernetes set pod label {key} themselves: remove it from podTemplate.metadata.labels"
        for key in sorted(labels)
        if any(key.startswith(mark) if mark[-1] in "/-" else key == mark for mark in written)
    ]
