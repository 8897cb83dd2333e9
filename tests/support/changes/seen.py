"""What the simulated operators run behind a spec, and values that several changes use."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.contract import Rendered
from support.deployments import GPU
from support.paths import values_at

Spec = dict[str, Any]
Seen = Callable[[Object], bool]

Change = tuple[Literal["in place", "recreate"], str, Spec, Spec, Seen]
"""What becomes of the upstream object, the field, the spec before, what replaces fields of it (None: removed), and
how the new value shows in what runs."""


def runs(upstream: Object | None) -> Object:
    """What the simulated operator says that it runs."""
    reported = ((upstream or {}).get("metadata", {}).get("annotations") or {}).get(
        "simulator.kubefoundry.ai/runs"
    )
    found: Object = json.loads(reported) if reported else {}
    return found


def at(path: str, value: Any) -> Seen:
    """Whether the value is at that path of what runs, or in a list there."""

    def seen(workload: Object) -> bool:
        found = values_at(Rendered(workload), path)
        return any(item == value or (isinstance(item, list) and value in item) for item in found)

    return seen


def without(text: str) -> Seen:
    return lambda workload: bool(workload) and text not in json.dumps(workload)


TEMPLATE: Spec = {**GPU, "image": "example.com/vllm:1.0.0"}
ENV = [{"name": "A", "value": "1"}]
POD = {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}}
TOLERATION = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}


def with_metadata(path: str) -> Seen:
    """Whether labels and annotations of POD are in the metadata at that path, beside others."""
    label, annotation = at(f"{path}.labels.team", "a"), at(f"{path}.annotations.note", "b")
    return lambda workload: label(workload) and annotation(workload)
