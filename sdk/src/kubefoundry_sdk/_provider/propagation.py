"""Labels and annotations that pass from a ModelDeployment to its upstream object (contract §4).

The administrator lists the keys. An upgrade, or another list, writes nothing: an annotation on the upstream object
names the keys that it follows, and another key waits for the user's next edit of the model, or a refresh.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kubefoundry_sdk._api import formats, names
from kubefoundry_sdk._api.conditions import first_of
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.contract import Deployment, Propagation, Rendered

LABELS: Final = "propagate_labels"
ANNOTATIONS: Final = "propagate_annotations"
"""Attributes of the parsed flags."""

_OWN: Final = (names.PREFIX, "kubectl.kubernetes.io/", "app.kubernetes.io/managed-by")
"""Keys, and beginnings of keys, that KubeFoundry or kubectl sets on each object itself."""


def keys(text: str) -> tuple[str, ...]:
    """Return the keys of `team,example.com/cost-center`. Raise ArgumentTypeError for an invalid or reserved key."""
    listed = tuple(dict.fromkeys(filter(None, (key.strip() for key in text.split(",")))))
    for key in listed:
        if not re.fullmatch(formats.QUALIFIED_NAME, key):
            raise argparse.ArgumentTypeError(f"{key!r} is not {formats.MEANINGS[formats.QUALIFIED_NAME]}")
        if key.startswith(_OWN):
            raise argparse.ArgumentTypeError(
                f"{key!r} is set by KubeFoundry or kubectl on each object itself"
            )
    return listed


def stated(arguments: argparse.Namespace) -> Propagation:
    """Return the keys of parsed flags."""
    return Propagation(getattr(arguments, LABELS), getattr(arguments, ANNOTATIONS))


def selected(propagates: Propagation, deployment: Deployment) -> Deployment:
    """Return the deployment with the labels and annotations that pass to its upstream object."""
    return replace(
        deployment,
        propagated_labels=_of_keys(deployment.labels, propagates.labels),
        propagated_annotations=_of_keys(deployment.annotations, propagates.annotations),
    )


def with_metadata(rendered: Rendered, deployment: Deployment) -> Rendered:
    """Return the render with the propagated labels and annotations on its main object; the render's own ones stay."""
    propagated = _propagated(deployment)
    if not any(propagated.values()):
        return rendered
    meta = dict(rendered.main["metadata"])
    for part, values in propagated.items():
        if values:
            meta[part] = {**values, **meta.get(part, {})}
    return replace(rendered, main={**rendered.main, "metadata": meta})


def followed(main: Object, propagates: Propagation, deployment: Deployment) -> str:
    """Return the keys whose values on the object are those of the deployment, for its annotation."""
    propagated = _propagated(selected(propagates, deployment))
    return ",".join(
        f"{part}/{key}"
        for part, part_keys in _listed(propagates).items()
        for key in sorted(part_keys)
        if _values(main, part).get(key) == propagated[part].get(key)
    )


def without_waiting(
    propagates: Propagation, deployment: Deployment, applied: Object, follows: str
) -> Propagation:
    """Return the keys without those that the object does not follow, and whose values it does not have.

    `applied` is the manifest of the last apply. `follows` has the keys that the object follows (`followed`).
    """
    kept = {*follows.split(","), *followed(applied, propagates, deployment).split(",")}
    return Propagation(
        tuple(key for key in propagates.labels if f"labels/{key}" in kept),
        tuple(key for key in propagates.annotations if f"annotations/{key}" in kept),
    )


def at_last_apply(propagates: Propagation, deployment: Deployment, applied: Object) -> Deployment:
    """Return the deployment with the labels and annotations of these keys as they were applied."""
    earlier = {"labels": dict(deployment.labels), "annotations": dict(deployment.annotations)}
    for part, part_keys in _listed(propagates).items():
        for key in part_keys:
            earlier[part].pop(key, None)
            if isinstance(value := _values(applied, part).get(key), str):
                earlier[part][key] = value
    return replace(deployment, labels=earlier["labels"], annotations=earlier["annotations"])


def note(main: Object, propagates: Propagation, deployment: Deployment) -> str:
    """Return the sentence about labels and annotations that the object does not carry; empty if it carries all."""
    missing = [
        f"{part.removesuffix('s')} {key}"
        for part, values in _propagated(selected(propagates, deployment)).items()
        for key, value in sorted(values.items())
        if _values(main, part).get(key) != value
    ]
    if not missing:
        return ""
    return (
        f"{main['kind']} '{deployment.name}' was applied when {first_of(missing)} did not pass to it. "
        f"The next edit of the spec that changes the {main['kind']} applies it. "
        f"To apply it now, set annotation {names.REFRESH_ANNOTATION} to another value"
    )


def _listed(propagates: Propagation) -> dict[str, tuple[str, ...]]:
    return {"labels": propagates.labels, "annotations": propagates.annotations}


def _propagated(deployment: Deployment) -> dict[str, Mapping[str, str]]:
    return {"labels": deployment.propagated_labels, "annotations": deployment.propagated_annotations}


def _of_keys(values: Mapping[str, str], selected_keys: tuple[str, ...]) -> dict[str, str]:
    return {key: values[key] for key in selected_keys if key in values}


def _values(obj: Object, part: str) -> Mapping[str, Any]:
    values = obj["metadata"].get(part)
    return values if isinstance(values, dict) else {}
