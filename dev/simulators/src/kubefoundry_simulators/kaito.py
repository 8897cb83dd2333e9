"""KAITO's workspace operator, as version 0.12 was recorded (bring-your-own and auto-provisioned nodes).

Seconds, reasons and messages are those of the recorded runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubefoundry_simulators.steps import (
    Create,
    Object,
    Operator,
    Report,
    Rewrite,
    Run,
    Step,
    annotated,
    condition,
    failure,
    find_condition,
    service,
    with_finalizer,
    without_finalizer,
)

FINALIZER: Final = "workspace.finalizer.kaito.sh"
HASH: Final = "workspace.kaito.io/hash"
REVISION: Final = "workspace.kaito.io/revision"
LONGEST_NAME: Final = 52
"""Characters of a name, at most. KAITO accepts a longer name, but its workload never starts: the value of the pods'
label `controller-revision-hash`, `<name>-<10 characters>`, is too long. From 55 characters on, the name of the
Service `<name>-headless` is too long as well."""
LONGEST_SERVICE: Final = 63

Outcome = tuple[str, str, str]
"""Status, reason, message of a condition."""

NODES_READY: Final[dict[str, Outcome]] = {
    "NodesReady": ("True", "NodesReady", "Enough Nodes are ready"),
    "ResourceReady": ("True", "workspaceResourceStatusSuccess", "workspace resource is ready"),
}
NO_NODES: Final[dict[str, Outcome]] = {
    "NodesReady": ("False", "NodeNotReady", "Not enough Nodes are ready"),
    "ResourceReady": ("False", "workspaceResourceStatusNotReady", "node status condition not ready"),
}
CLAIMS_PENDING: Final[dict[str, Outcome]] = {
    "NodesReady": ("False", "NodeNotReady", "Not enough Nodes are ready"),
    "NodeClaimReady": ("False", "NodeClaimNotReady", "Ready NodeClaims are not enough"),
    "ResourceReady": ("False", "NodeClaimNotReady", "node claim status condition not ready"),
}
CLAIMS_READY: Final[dict[str, Outcome]] = {
    "NodeClaimReady": ("True", "NodeClaimsReady", "Enough NodeClaims are ready")
}
WAITING: Final[dict[str, Outcome]] = {
    "InferenceReady": ("False", "WorkspaceInferenceStatusPending", "Inference workload is not ready"),
    "WorkspaceSucceeded": (
        "False",
        "workspacePending",
        "workspace is waiting for inference workload readiness",
    ),
}
SERVING: Final[dict[str, Outcome]] = {
    "InferenceReady": ("True", "WorkspaceInferenceStatusSuccess", "Inference has been deployed successfully"),
    "WorkspaceSucceeded": ("True", "workspaceSucceeded", "workspace succeeds"),
}
BENCHMARKED: Final[dict[str, Outcome]] = {
    "BenchmarkCompleted": ("True", "BenchmarkCompleted", "benchmark result has been recorded")
}
PERFORMANCE: Final = {
    "metrics": {
        "peakTokensPerMinute": {
            "config": {"durationSec": "60", "engine": "vllm", "inputTokens": "512", "outputTokens": "128"},
            "description": "stress/high-concurrency",
            "unit": "tokens/min",
            "value": "123456",
        }
    }
}
PROBLEMS: Final[dict[str, tuple[str, str]]] = {
    "unschedulable": (
        "Unschedulable",
        'pod "{name}-0" is unschedulable: 0/8 nodes are available: 8 Insufficient nvidia.com/gpu.',
    ),
    "crash-loop": (
        "ContainerCrashLoopBackOff",
        'container "model" is in CrashLoopBackOff; last termination: exit code 1',
    ),
    "image-pull": (
        "ImagePullError",
        'container "model" image pull failed (ImagePullBackOff): Back-off pulling image',
    ),
}
"""Reason and message of InferenceReady=False, by the failure that the object requests."""


def adopt(workspace: Object) -> list[Step]:
    """Add the finalizer, then the annotations and a rewritten spec, which is generation 2."""
    if REVISION in (workspace["metadata"].get("annotations") or {}):
        return []
    return [
        Rewrite(0.0, lambda live: with_finalizer(live, FINALIZER)),
        Rewrite(0.02, lambda live: _revised(_filled(live), 1)),
    ]


def plan(workspace: Object, before: Object | None) -> list[Step]:
    """Deploy a new Workspace. Later, report the changes of the status after an edit or a failure."""
    if find_condition(workspace, "InferenceReady") is None:
        return list(_start(workspace))
    steps: list[Step] = []
    if before is not None and _hash(before) != _hash(workspace):
        revision = int((workspace["metadata"].get("annotations") or {}).get(REVISION, "1"))
        steps.append(Rewrite(0.01, lambda live: _revised(live, revision + 1)))
    # A template edit changes only the generations. The StatefulSet keeps the old pods.
    if failure(workspace) in PROBLEMS:
        return [*steps, Report(0.3, _troubled(workspace, "NotReady"))]
    return [*steps, Report(0.05, _served(workspace))]


def leave(workspace: Object) -> list[Step]:
    """Remove the finalizer at once. The garbage collector deletes the children."""
    return [Rewrite(0.01, lambda live: without_finalizer(live, FINALIZER))]


def _start(workspace: Object) -> Iterator[Step]:
    name = workspace["metadata"]["name"]
    yield Report(0.01, {"targetNodeCount": _nodes(workspace)})
    if len(name) > LONGEST_NAME:
        yield Report(0.1, _status(workspace, WAITING | _too_long(name), "Pending"))
        return
    if failure(workspace) == "no-nodes":
        yield Report(0.01, _status(workspace, NO_NODES | WAITING, "Pending"))
        return
    if _provisioned(workspace):
        yield Report(0.01, _status(workspace, CLAIMS_PENDING | WAITING, "Pending"))
    yield Create(0.45, service(workspace, name, _PORTS, _selector(workspace)))
    yield Create(
        0.33,
        service(workspace, f"{name}-headless", {}, {"kaito.sh/workspace": name}, headless=True),
    )
    inference = workspace.get("inference") or {}
    # KAITO never writes the StatefulSet again, so this workload is the last.
    yield Run(0.0, {"resource": workspace.get("resource"), "inference": inference}, inference.get("config"))
    yield Report(0.47, _status(workspace, _nodes_ready(workspace) | WAITING, "Pending"))
    if failure(workspace) in PROBLEMS:
        yield Report(2.0, _troubled(workspace, "Pending"))
    else:
        yield Report(0.37, _served(workspace))


_PORTS: Final = {
    "http": (80, 5000),
    "ray": (6379, 6379),
    "dashboard": (8265, 8265),
    "kv-events": (5557, 5557),
}


def _selector(workspace: Object) -> dict[str, str]:
    name = workspace["metadata"]["name"]
    return {"kaito.sh/workspace": name, "statefulset.kubernetes.io/pod-name": f"{name}-0"}


def _served(workspace: Object) -> Object:
    conditions = _nodes_ready(workspace) | SERVING
    if not _preset(workspace):
        return _status(workspace, conditions, "Ready")
    if failure(workspace) == "benchmark":
        name, namespace = workspace["metadata"]["name"], workspace["metadata"]["namespace"]
        text = f"pod {namespace}/{name}-0: no KAITO_BENCHMARK_RESULT line found in pod logs"
        failed: Outcome = ("False", "BenchmarkFailed", text)
        return _status(
            workspace, conditions | {"WorkspaceSucceeded": failed, "BenchmarkCompleted": failed}, "NotReady"
        )
    return {**_status(workspace, conditions | BENCHMARKED, "Ready"), "performance": PERFORMANCE}


def _troubled(workspace: Object, state: str) -> Object:
    reason, message = PROBLEMS[failure(workspace) or ""]
    outcome: Outcome = ("False", reason, message.format(name=workspace["metadata"]["name"]))
    return _status(workspace, _nodes_ready(workspace) | WAITING | {"InferenceReady": outcome}, state)


def _too_long(name: str) -> dict[str, Outcome]:
    text = "Inference workload is not ready"
    if len(f"{name}-headless") > LONGEST_SERVICE:
        text += (
            f' (last reconcile error: Service "{name}-headless" is invalid: must be no more than 63 bytes)'
        )
    return {"InferenceReady": ("False", "WorkspaceInferenceStatusPending", text)}


def _status(workspace: Object, conditions: Mapping[str, Outcome], state: str) -> Object:
    generation = workspace["metadata"]["generation"]
    return {
        "targetNodeCount": _nodes(workspace),
        "workerNodes": ["gpu-0"],
        "conditions": [condition(type_, *outcome, generation) for type_, outcome in conditions.items()],
        "state": state,
    }


def _nodes_ready(workspace: Object) -> dict[str, Outcome]:
    return NODES_READY | CLAIMS_READY if _provisioned(workspace) else NODES_READY


def _provisioned(workspace: Object) -> bool:
    """Check whether KAITO has to create the node, because an instanceType is set."""
    return bool((workspace.get("resource") or {}).get("instanceType"))


def _preset(workspace: Object) -> bool:
    return "preset" in (workspace.get("inference") or {})


def _nodes(workspace: Object) -> int:
    count = (workspace.get("resource") or {}).get("count") or 1
    return 1 if _preset(workspace) else max(int(count), 1)


def _filled(workspace: Object) -> Object:
    """Add the empty objects that a Go client writes back for structs without `omitempty`."""
    inference: dict[str, Any] = dict(workspace.get("inference") or {})
    if _preset(workspace):
        inference["preset"] = {"presetOptions": {}, **inference["preset"]}
    elif "template" in inference:
        inference["template"] = {"metadata": {}, **inference["template"]}
    return {**workspace, "inference": inference}


def _revised(workspace: Object, revision: int) -> Object:
    return annotated(workspace, {HASH: _hash(workspace), REVISION: str(revision)})


def _hash(workspace: Object) -> str:
    text = json.dumps([workspace.get("resource"), workspace.get("inference")], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


OPERATOR: Final = Operator(
    name="kaito",
    crd="workspaces.kaito.sh",
    manager="kaito-workspace",
    adopt=adopt,
    plan=plan,
    leave=leave,
)
