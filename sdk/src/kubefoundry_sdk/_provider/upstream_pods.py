"""Selects the pods that belong to an upstream object."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.pod_owners import maker_names


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods of an upstream object, by a label that the upstream system sets on all of them.

    Attributes:
        label: The label's key.
        values: Returns the label's values on the pods of an upstream object.
        makers: Returns the names of the objects that create the pods of an upstream object: StatefulSets,
            Deployments, RayClusters.
        creation_events: A field selector for Events about pods that could not be created. Without it, such Events
            are not watched.
        also: Further labels of the pods, if other software uses the key of `label`, too (`app.kubernetes.io/name`).
        owned: Whether to count only pods whose controller is one of `makers`, or a ReplicaSet of one.
        roles: Keys of the labels that hold a pod's roles (`worker`, `decode`), for `kubefoundry logs --role`.
            Empty if all pods have the same role.
    """

    label: str
    values: Callable[[Object], Sequence[str]]
    makers: Callable[[Object], Sequence[str]] = lambda upstream: ()
    creation_events: str | None = None
    also: Mapping[str, str] = field(default_factory=dict)
    owned: bool = False
    roles: Sequence[str] = ()


def selector(source: Pods, values: Sequence[str] = ()) -> str:
    """Return the label selector of the pods whose label has one of the values.

    Without values it selects the pods of all upstream objects.
    """
    label = f"{source.label} in ({','.join(values)})" if values else source.label
    return ",".join([label, *(f"{key}={value}" for key, value in source.also.items())])


def belongs(source: Pods, pod: Object, upstream: Object) -> bool:
    """Check whether a pod with the labels belongs to this upstream object, and not to an earlier or another one."""
    if pod["metadata"]["creationTimestamp"] < upstream["metadata"]["creationTimestamp"]:
        return False
    return not source.owned or _made_by(pod, source.makers(upstream))


def roles(source: Pods, pod: Object) -> frozenset[str]:
    """Return a pod's roles, empty if it has none."""
    labels: Mapping[str, Any] = pod["metadata"].get("labels") or {}
    return frozenset(labels[key] for key in source.roles if labels.get(key))


def _made_by(pod: Object, makers: Sequence[str]) -> bool:
    """Check whether the pod's controller is one of the makers, or a ReplicaSet of one."""
    return any(
        name in makers
        for reference in pod["metadata"].get("ownerReferences") or ()
        if reference.get("controller")
        for name in maker_names(reference.get("kind", ""), reference.get("name", ""))
    )
