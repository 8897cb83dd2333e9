"""NVIDIA's Dynamo operator, according to its documentation and source (1.0 to 1.4); it was never seen running.

The seconds are assumed.
"""

from __future__ import annotations

import hashlib
import json
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
    spec,
    with_finalizer,
    without_finalizer,
)

FINALIZER: Final = "nvidia.com/finalizer"
WORKER_HASH: Final = "nvidia.com/current-worker-hash"
ORIGIN: Final = "nvidia.com/dynamo-operator-origin-version"

NOT_READY: Final = ("pending", "False", "some_resources_are_not_ready", "Resources not ready: {names}")
ROLLING: Final = ("pending", "False", "rolling_update_in_progress", "Rolling update in progress")
READY: Final = ("successful", "True", "all_resources_are_ready", "All resources are ready")
BROKEN: Final = (
    "failed",
    "False",
    "failed_to_reconcile_the_resources",
    "failed to reconcile the resources: backend framework mismatch",
)


def adopt(graph: Object) -> list[Step]:
    """Adds the finalizer and the operator's annotations; the spec, and so the generation, stays."""
    if FINALIZER in (graph["metadata"].get("finalizers") or []):
        return []
    return [
        Rewrite(
            0.02,
            lambda live: annotated(
                with_finalizer(live, FINALIZER), {WORKER_HASH: _worker_hash(live), ORIGIN: "1.4.0"}
            ),
        )
    ]


def plan(graph: Object, before: Object | None) -> list[Step]:
    """Deploys, or rolls out an edit. Crash-looping pods stay `pending` forever, like the real ones."""
    asked = failure(graph)
    first = find_condition(graph, "Ready") is None
    steps: list[Step] = []
    if first:
        steps.append(Report(0.05, {"state": "initializing"}))
    if asked == "failed":
        return [*steps, Report(0.2, _status(graph, BROKEN, 0))]
    if first:
        steps.append(Report(0.2, _status(graph, NOT_READY, 0)))
        steps += [Create(0.1, _frontend_service(graph, name)) for name in _frontends(graph)]
    elif asked == "not-ready":
        steps.append(Report(0.2, _status(graph, NOT_READY, 0)))
    elif before is not None and _worker_hash(before) != _worker_hash(graph):
        steps.append(Rewrite(0.1, lambda live: annotated(live, {WORKER_HASH: _worker_hash(live)})))
        steps.append(Report(0.1, _status(graph, ROLLING, 1)))
    if asked != "not-ready":
        steps.append(Run(3.0, {"backend": spec(graph).get("backendFramework"), **_components(graph)}))
        steps.append(Report(0.0, _status(graph, READY, None)))
    return steps


def leave(graph: Object) -> list[Step]:
    """Removes the finalizer; the garbage collector deletes the children."""
    return [Rewrite(0.1, lambda live: without_finalizer(live, FINALIZER))]


def _status(graph: Object, outcome: tuple[str, str, str, str], ready: int | None) -> Object:
    """`ready` limits the ready replicas of every component; None means all."""
    state, status, reason, message = outcome
    generation = graph["metadata"]["generation"]
    components = _components(graph)
    counts = {name: _counts(graph, name, part, ready) for name, part in components.items()}
    text = message.format(names=", ".join(sorted(components)))
    return {
        "state": state,
        "observedGeneration": generation,
        "conditions": [condition("Ready", status, reason, text, generation)],
        "components" if _is_list(graph) else "services": counts,
    }


def _counts(graph: Object, name: str, part: dict[str, Any], ready: int | None) -> Object:
    replicas = int(part.get("replicas", 1))
    up = replicas if ready is None else min(ready, replicas)
    workload = f"{graph['metadata']['name']}-{name.lower()}"
    # the older shape names one workload, the newer ones several
    named = {} if _is_list(graph) else {"componentName": workload}
    return {
        "componentKind": "Deployment",
        **named,
        "componentNames": [workload],
        "replicas": replicas,
        "updatedReplicas": replicas,
        "readyReplicas": up,
        "availableReplicas": up,
    }


def _is_list(graph: Object) -> bool:
    """v1beta1 has a list of components, v1alpha1 a map of services."""
    return "components" in spec(graph)


def _components(graph: Object) -> dict[str, dict[str, Any]]:
    if _is_list(graph):
        return {part["name"]: part for part in spec(graph)["components"]}
    return dict(spec(graph).get("services") or {})


def _frontends(graph: Object) -> list[str]:
    return [
        name
        for name, part in _components(graph).items()
        if (part.get("type") or part.get("componentType")) == "frontend"
    ]


def _frontend_service(graph: Object, component: str) -> Object:
    name = graph["metadata"]["name"]
    selector = {
        "nvidia.com/dynamo-component-type": "frontend",
        "nvidia.com/dynamo-graph-deployment-name": name,
    }
    return service(graph, f"{name}-{component.lower()}", {"http": (8000, 8000)}, selector)


def _worker_hash(graph: Object) -> str:
    parts = [
        {key: value for key, value in part.items() if key != "replicas"}
        for part in _components(graph).values()
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]


OPERATOR: Final = Operator(
    name="dynamo",
    crd="dynamographdeployments.nvidia.com",
    manager="dynamo-operator",
    adopt=adopt,
    plan=plan,
    leave=leave,
)
