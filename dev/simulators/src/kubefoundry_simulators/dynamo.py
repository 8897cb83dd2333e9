"""NVIDIA's Dynamo operator without Grove, as 1.0.1, 1.4 and the 1.5 line were recorded.

Seconds, reasons and messages are those of 1.4. An edit of a worker starts a rolling update with one worker more than
requested. An edit of the frontend only rolls out its Deployment. Replicas change in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kubefoundry_simulators.dynamo_graph import (
    components,
    frontend_parts,
    frontends,
    has_served,
    is_list,
    is_too_long,
    running_hash,
    worker_hash,
    workload_name,
)
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
    runs,
    service,
    spec,
    with_finalizer,
    without_finalizer,
)

FINALIZER: Final = "nvidia.com/finalizer"
WORKER_HASH: Final = "nvidia.com/current-worker-hash"
ORIGIN: Final = "nvidia.com/dynamo-operator-origin-version"

UNPROCESSED: Final = "spec not yet processed: generation={new}, observedGeneration={old}"
UNAVAILABLE: Final = "Component deployment not ready - Available condition not true"
NOT_READY: Final = ("pending", "False", "some_resources_are_not_ready", "Resources not ready: {words}")
ROLLING: Final = ("pending", "False", "rolling_update_in_progress", "Rolling update in progress")
READY: Final = ("successful", "True", "all_resources_are_ready", "All resources are ready")
BROKEN: Final = (
    "failed",
    "False",
    "failed_to_reconcile_the_resources",
    "failed to reconcile the resources: backend framework mismatch",
)
COMPLETED: Final[Object] = {"rollingUpdate": {"phase": "Completed"}}

Counts = tuple[int, int, int]
"""Numbers of all replicas, updated replicas and ready replicas."""


def adopt(graph: Object) -> list[Step]:
    """Add the finalizer and the operator's annotations. The spec, and so the generation, stays the same."""
    if FINALIZER in (graph["metadata"].get("finalizers") or []):
        return []
    return [
        Rewrite(
            0.02,
            lambda live: annotated(
                with_finalizer(live, FINALIZER), {WORKER_HASH: worker_hash(live), ORIGIN: "1.4.0"}
            ),
        )
    ]


def plan(graph: Object, before: Object | None) -> list[Step]:
    """Deploy, or roll out an edit. Crash-looping pods stay `pending` forever, as recorded."""
    requested_failure = failure(graph)
    is_new = find_condition(graph, "Ready") is None
    steps: list[Step] = [Report(0.05, {"state": "initializing"})] if is_new else []
    if requested_failure == "failed":
        return [*steps, Report(0.2, _status(graph, BROKEN, _counts(graph, 0)))]
    if is_new:
        return [*steps, *_start(graph)]
    if requested_failure == "not-ready":
        return [Report(0.2, _waiting(graph, components(graph), _counts(graph, 0)))]
    if before is not None and has_served(graph) and (edit_steps := list(_edit(graph, before))):
        return edit_steps
    return [Run(3.0, _workload(graph)), Report(0.0, _status(graph, READY, _counts(graph)))]


def _edit(graph: Object, before: Object) -> Iterable[Step]:
    """Return the steps of an edit, none if it changes no component."""
    # The order matters: an edit that restores the running workers needs no rolling update.
    if runs(graph) and running_hash(graph) == worker_hash(graph) != worker_hash(before):
        return _roll_back(graph)
    if worker_hash(before) != worker_hash(graph):
        return _roll(graph, before)
    if frontend_parts(before) != frontend_parts(graph):
        return _replace_frontend(graph)
    return _scale(graph, before) if components(before) != components(graph) else ()


def leave(graph: Object) -> list[Step]:
    """Remove the finalizer. The garbage collector deletes the children."""
    return [Rewrite(0.1, lambda live: without_finalizer(live, FINALIZER))]


def _start(graph: Object) -> Iterator[Step]:
    """Deploy a new graph. The real operator reports more steps, which depend on the order of its components."""
    yield Report(0.6, _waiting(graph, components(graph), _counts(graph, 0)))
    for name in frontends(graph):
        yield Create(0.1, _frontend_service(graph, name))
    if failure(graph) == "not-ready" or is_too_long(graph):
        return
    yield Run(6.2, _workload(graph))
    yield Report(0.0, _status(graph, READY, _counts(graph)))


def _roll(graph: Object, before: Object) -> Iterator[Step]:
    """Replace the workers one at a time. Each new worker starts before an old worker ends.

    The update stays in progress if a new worker does not start (`stuck`: no GPU, a bad image).
    """
    yield Rewrite(0.1, lambda live: annotated(live, {WORKER_HASH: worker_hash(live)}))
    old = _replicas(before)
    yield Report(0.4, _rolling(graph, "Pending", {name: (count, 0, count) for name, count in old.items()}))
    yield Report(0.9, _rolling(graph, "InProgress", {name: (count, 0, count) for name, count in old.items()}))
    for done in range(1, 1 + max(old.values(), default=0)):
        up = {name: (count + 1, min(done, count), count) for name, count in old.items()}
        yield Report(0.6, _rolling(graph, "InProgress", up))
        if failure(graph) == "stuck" or is_too_long(graph):
            return
        ready = {name: (all_, updated, all_) for name, (all_, updated, _) in up.items()}
        yield Report(4.9, _rolling(graph, "InProgress", ready))
        if done < max(old.values()):
            fewer = {name: (count, min(done, count), count) for name, count in old.items()}
            yield Report(0.5, _rolling(graph, "InProgress", fewer))
    yield Run(2.0, _workload(graph))
    yield Report(0.05, {**_status(graph, READY, _counts(graph)), **COMPLETED})


def _roll_back(graph: Object) -> Iterator[Step]:
    """Return to the spec of the running workers. They are not restarted."""
    yield Rewrite(0.1, lambda live: annotated(live, {WORKER_HASH: worker_hash(live)}))
    names = frontends(graph)
    two = {**_counts(graph), **dict.fromkeys(names, (2, 1, 1))}
    yield Report(0.5, {**_waiting(graph, names, two), **COMPLETED})
    yield Run(1.0, _workload(graph))
    yield Report(0.0, {**_status(graph, READY, _counts(graph)), **COMPLETED})


def _replace_frontend(graph: Object) -> Iterator[Step]:
    names, generation = frontends(graph), graph["metadata"]["generation"]
    words = UNPROCESSED.format(new=generation, old=generation - 1)
    yield Report(0.4, _waiting(graph, names, _counts(graph), words))
    two = {**_counts(graph), **dict.fromkeys(names, (2, 1, 1))}
    yield Report(1.0, _waiting(graph, names, two))
    if failure(graph) == "stuck":
        return
    yield Run(3.7, _workload(graph))
    yield Report(0.7, _status(graph, READY, _counts(graph)))


def _scale(graph: Object, before: Object) -> Iterator[Step]:
    generation, counts = graph["metadata"]["generation"], _counts(before)
    names = [name for name, part in components(graph).items() if part != components(before).get(name)]
    words = UNPROCESSED.format(new=generation, old=generation - 1)
    yield Report(0.4, _waiting(graph, names, counts, words))
    if failure(graph) == "stuck":
        return
    yield Run(0.7, _workload(graph))
    yield Report(0.0, _status(graph, READY, _counts(graph)))


def _waiting(graph: Object, names: Any, counts: Mapping[str, Counts], words: str = UNAVAILABLE) -> Object:
    outcome = NOT_READY[:3]
    listed = "; ".join(f"{workload_name(graph, name)}: {words}" for name in names)
    return _status(graph, (*outcome, NOT_READY[3].format(words=listed)), counts)


def _rolling(graph: Object, phase: str, workers: Mapping[str, Counts]) -> Object:
    up = {name: _counts(graph)[name] for name in frontends(graph)}
    return {**_status(graph, ROLLING, {**up, **workers}), "rollingUpdate": {"phase": phase}}


def _status(graph: Object, outcome: tuple[str, str, str, str], counts: Mapping[str, Counts]) -> Object:
    state, status, reason, message = outcome
    generation = graph["metadata"]["generation"]
    return {
        "state": state,
        "observedGeneration": generation,
        "conditions": [condition("Ready", status, reason, message, generation)],
        "components" if is_list(graph) else "services": {
            name: _count(graph, name, count) for name, count in counts.items()
        },
    }


def _count(graph: Object, name: str, counts: Counts) -> Object:
    replicas, updated, ready = counts
    workload = workload_name(graph, name)
    # Only v1alpha1 has the singular field.
    singular = {} if is_list(graph) else {"componentName": workload}
    return {
        "componentKind": "Deployment",
        **singular,
        "componentNames": [workload],
        "replicas": replicas,
        "updatedReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": ready,
    }


def _counts(graph: Object, ready: int | None = None) -> dict[str, Counts]:
    """Return the requested replicas of all components. `ready` limits the ready replicas of each; None means all."""
    requested = {name: int(part.get("replicas", 1)) for name, part in components(graph).items()}
    return {
        name: (count, count, count if ready is None else min(ready, count))
        for name, count in requested.items()
    }


def _replicas(graph: Object) -> dict[str, int]:
    """Return the requested replicas of the workers."""
    return {name: count for name, (count, _, _) in _counts(graph).items() if name not in frontends(graph)}


def _workload(graph: Object) -> Object:
    return {"backend": spec(graph).get("backendFramework"), **components(graph)}


def _frontend_service(graph: Object, component: str) -> Object:
    name = graph["metadata"]["name"]
    selector = {
        "nvidia.com/dynamo-component-type": "frontend",
        "nvidia.com/dynamo-graph-deployment-name": name,
    }
    return service(graph, f"{name}-{component.lower()}", {"http": (8000, 8000)}, selector)


OPERATOR: Final = Operator(
    name="dynamo",
    crd="dynamographdeployments.nvidia.com",
    manager="dynamo-operator",
    adopt=adopt,
    plan=plan,
    leave=leave,
)
