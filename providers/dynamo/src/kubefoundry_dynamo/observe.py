"""The status of a DynamoGraphDeployment in KubeFoundry's terms (sources §2.5; 0.4 to the 1.5 line).

Running means that it serves now. From 0.8 on the pod counts prove that, whatever else the operator is doing; before,
`state: successful` is the only evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubefoundry_dynamo.graph import FRONTEND, Pool, pools
from kubefoundry_sdk import Deployment, Endpoint, Object, Observation, ObservedPhase, ReadyReason, Replicas
from kubefoundry_sdk.api.fields import MAX_INT32
from kubefoundry_sdk.api.parts import mapping
from kubefoundry_sdk.provider.upstream_status import UpstreamCondition, count, upstream_conditions

PORT: Final = 8000
STATES: Final = frozenset({"", "initializing", "pending", "successful", "failed"})
"""Values of `status.state`; up to 0.9 it is empty before the first reconcile."""
ROLLOUT_FAILED: Final = "rolling_update_failed"


class Count(NamedTuple):
    """Pods of one component. A PodCliqueScalingGroup reports only available pods, not ready ones."""

    replicas: int
    ready: int
    available: int


class Status(NamedTuple):
    """The parts of `status` that are used, whatever was there.

    words: the operator's own.
    fresh: whether it is about the newest generation, as far as it shows.
    failed: whether that generation failed.
    """

    state: str
    words: str
    counts: Mapping[str, Count]
    fresh: bool
    failed: bool


def observe(deployment: Deployment, live: Object) -> Observation:
    status = _read(live)
    workers = pools(deployment.spec)
    phase, reason, message = _phase(live, status, workers)
    return Observation(
        phase=phase,
        reason=reason,
        message=message,
        replicas=_replicas(status, workers, serving=phase == "Running"),
        endpoint=Endpoint(f"{deployment.name}-{FRONTEND.lower()}", PORT),
        update_failed=phase == "Running" and status.failed,
    )


def workloads(live: Object) -> list[str]:
    """Names of the Deployments of its components (sources §2.4), without the suffix that the operator appends."""
    name, spec = mapping(live.get("metadata")).get("name"), mapping(live.get("spec"))
    listed = spec.get("components")
    components = [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
    named = [*mapping(spec.get("services")), *(component.get("name") for component in components)]
    return [f"{name}-{component.lower()}" for component in named if isinstance(component, str)]


def _phase(live: Object, status: Status, workers: Sequence[Pool]) -> tuple[ObservedPhase, ReadyReason, str]:
    if mapping(live.get("metadata")).get("deletionTimestamp"):
        return "Deploying", "Progressing", "the DynamoGraphDeployment is being deleted"
    if status.state not in STATES:
        return (
            "Deploying",
            "Unknown",
            f"unknown state {status.state!r} of the DynamoGraphDeployment: {status.words}",
        )
    if not any(pool.replicas for pool in workers):
        if _gone(status, workers):
            return "Pending", "ScaledToZero", "scaled to zero replicas"
    elif _serves(status, workers):
        return "Running", "DeploymentReady", _running_message(status, workers)
    if status.failed:
        return "Failed", "Failed", status.words
    phase: ObservedPhase = "Deploying" if live.get("status") else "Pending"
    return phase, "Progressing", _with_freshness(status, status.words)


def _serves(status: Status, workers: Sequence[Pool]) -> bool:
    """Whether every component that should run has a ready pod; for one without counts the state decides."""
    needed = [FRONTEND, *(pool.name for pool in workers if pool.replicas)]
    return all(
        status.counts[name].ready > 0 if name in status.counts else _successful(status) for name in needed
    )


def _gone(status: Status, workers: Sequence[Pool]) -> bool:
    """Whether no worker has a pod any more; for one without counts the state decides."""
    return all(
        pods.replicas == pods.ready == 0
        if (pods := status.counts.get(pool.name)) is not None
        else _successful(status)
        for pool in workers
    )


def _successful(status: Status) -> bool:
    return bool(status.state == "successful" and status.fresh)


def _replicas(status: Status, workers: Sequence[Pool], *, serving: bool) -> Replicas:
    """Sums over the workers. For a worker without counts, a serving graph has the requested number.

    Requests reach a worker only if the whole graph serves: through the frontend, and both prefill and decode.
    """
    ready = available = 0
    for pool in workers:
        if (pods := status.counts.get(pool.name)) is not None:
            ready += pods.ready
            available += pods.available if serving else 0
        elif serving:
            ready += pool.replicas
            available += pool.replicas
    desired = sum(pool.replicas for pool in workers)
    # each fits the status, their sum may not
    return Replicas(*(min(number, MAX_INT32) for number in (desired, ready, available)))


def _running_message(status: Status, workers: Sequence[Pool]) -> str:
    if _successful(status):
        return status.words
    replicas = _replicas(status, workers, serving=True)
    return _with_freshness(status, f"{replicas.ready} of {replicas.desired} replicas ready: {status.words}")


def _with_freshness(status: Status, message: str) -> str:
    return (
        message if status.fresh else f"the Dynamo operator has not seen the newest generation yet; {message}"
    )


def _read(live: Object) -> Status:
    """Never raises, whatever a newer operator writes."""
    status = mapping(live.get("status"))
    ready = upstream_conditions(status).get("Ready", UpstreamCondition())
    state = status.get("state", "")
    # no operator writes this: since it is shown, only its type
    state = state if isinstance(state, str) else f"of type {type(state).__name__}"
    words = ready.message or ready.reason or (f"state {state}" if state else "nothing reported yet")
    seen, generation = status.get("observedGeneration"), mapping(live.get("metadata")).get("generation")
    stale = isinstance(seen, int) and isinstance(generation, int) and seen < generation
    failed = not stale and (state == "failed" or ready.reason == ROLLOUT_FAILED)
    return Status(state, words, _counts(status), fresh=not stale, failed=failed)


def _counts(status: Mapping[str, Any]) -> dict[str, Count]:
    """`services` (v1alpha1, from 0.8) or `components` (v1beta1) by the rendered name."""
    stated = mapping(status.get("services")) or mapping(status.get("components"))
    return {name: _count(value) for name, value in stated.items() if isinstance(value, Mapping)}


def _count(value: Mapping[str, Any]) -> Count:
    available = count(value.get("availableReplicas"))
    ready = count(value.get("readyReplicas"))
    return Count(
        replicas=count(value.get("replicas")) or 0,
        ready=(available if ready is None else ready) or 0,
        available=(ready if available is None else available) or 0,
    )
