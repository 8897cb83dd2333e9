"""The workload that the simulated operators run, and values that several changes use."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.contract import Rendered
from support.deployments import DISAGGREGATED, GPU
from support.paths import values_at

Spec = dict[str, Any]
Seen = Callable[[Object], bool]

Change = tuple[Literal["in place", "recreate"], str, Spec, Spec, Seen]
"""The effect on the upstream object, the field, the spec before, the replacements of its fields (None removes), and a
check for the new value in the running workload."""


def runs(upstream: Object | None) -> Object:
    """Return the workload that the simulated operator reports, or an empty object."""
    annotations = (upstream or {}).get("metadata", {}).get("annotations") or {}
    workload: Object = json.loads(annotations.get("simulator.kubefoundry.ai/runs") or "{}")
    return workload


def at(path: str, value: Any) -> Seen:
    """Return a check for a value at a path of the running workload, or in a list there."""

    def is_at(workload: Object) -> bool:
        candidates = values_at(Rendered(workload), path)
        return any(item == value or (isinstance(item, list) and value in item) for item in candidates)

    return is_at


def without(text: str) -> Seen:
    """Return a check that a text is nowhere in the running workload."""
    return lambda workload: bool(workload) and text not in json.dumps(workload)


TEMPLATE: Spec = {**GPU, "image": "example.com/vllm:1.0.0"}
ENV = [{"name": "A", "value": "1"}]
POD = {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}}
STORAGE = {"volumes": [{"name": "weights", "claimName": "w", "purpose": "modelCache"}]}
CLAIM = {"name": "weights", "persistentVolumeClaim": {"claimName": "w"}}
TOLERATION = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}


def with_metadata(path: str) -> Seen:
    """Return a check for the labels and annotations of POD in the metadata at a path, possibly beside others."""
    label, annotation = at(f"{path}.labels.team", "a"), at(f"{path}.annotations.note", "b")
    return lambda workload: label(workload) and annotation(workload)


EDITS: dict[str, Spec] = {
    "model.id": {"model": {"id": "org/other"}},
    "model.source": {"model": {"id": "org/model", "source": "custom"}},
    "model.servedName": {"model": {"id": "org/model", "servedName": "x"}},
    "model.storage": {"model": {"id": "org/model", "storage": STORAGE}},
    "serving.mode": {k: DISAGGREGATED[k] for k in ("serving", "scaling")} | {"resources": {}},
    "scaling.replicas": {"scaling": {"replicas": 3}},
    "env": {"env": ENV},
    "resources": {"resources": {"gpu": {"count": 2}, "memory": "32Gi", "cpu": "8"}},
    "engine.args": {"engine": {"type": "vllm", "args": {"seed": "7"}}},
    "engine.contextLength": {"engine": {"type": "vllm", "contextLength": 8192}},
    "engine.trustRemoteCode": {"engine": {"type": "vllm"}},
    "secrets.huggingFaceToken": {"secrets": {"huggingFaceToken": "s"}},
    "podTemplate.metadata": {"podTemplate": POD},
    "podTemplate.spec": {"podTemplate": {"spec": {"priorityClassName": "high"}}},
    "podTemplate.container": {"podTemplate": {"container": {"securityContext": {"runAsUser": 7}}}},
    "nodeSelector": {"nodeSelector": {"pool": "a"}},
    "tolerations": {"tolerations": [TOLERATION]},
}
"""The edit of each field, with the same new value on every provider."""


def role(name: Literal["prefill", "decode"], replicas: int, gpu: int, memory: str) -> Spec:
    """Return the edit that changes one role of disaggregated serving."""
    roles = {name: {"replicas": replicas, "gpu": {"count": gpu}, "memory": memory}}
    return {"scaling": {**DISAGGREGATED["scaling"], **roles}}
