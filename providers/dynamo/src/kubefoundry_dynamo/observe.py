"""The status of a DynamoGraphDeployment in KubeFoundry's terms (sources §2.5; 0.4 to the 1.5 line).

Running means that the graph serves now. From 0.8 on, the pod counts prove that, whatever else the operator does.
Before 0.8, `state: successful` is the only evidence. After an edit, the newest generation serves only once the
operator reports `successful` for it. Until then, the counts may include pods of the earlier generation, and no
message or reason proves the opposite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubefoundry_dynamo.graph import FRONTEND, Pool, pools
from kubefoundry_sdk import Deployment, Endpoint, Object, Observation, ObservedPhase, ReadyReason, Replicas
from kubefoundry_sdk.engine import served_apis
from kubefoundry_sdk.status import (
    MAX_INT32,
    UpstreamCondition,
    count,
    mapping,
    outdated,
    text,
    upstream_conditions,
)

PORT: Final = 8000
GRAPH_LABEL: Final = "nvidia.com/dynamo-graph-deployment-name"
COMPONENT_LABEL: Final = "nvidia.com/dynamo-component-type"
STATES: Final = frozenset({"", "initializing", "pending", "successful", "failed"})
"""Values of `status.state`; up to 0.9 it is empty before the first reconcile."""
COUNTED: Final = ("observedGeneration", "services", "components")
"""Fields of a status whose CRD has counts of pods."""
ROLLOUT_FAILED: Final = "rolling_update_failed"
IN_PROGRESS: Final = "rolling_update_in_progress"
ROLLED: Final = frozenset({"", "None", "Completed", "Failed"})
"""Values of `status.rollingUpdate.phase` while no update is in progress (from 1.0 on, without Grove). With any other
value, known (Pending, InProgress) or unknown, old and new workers may exist."""
FAILED_ROLLING: Final = "Failed"
"""Value of `status.rollingUpdate.phase` after an update that ended without new workers."""
PASSING: Final = (
    "the object has been modified",
    "etcdserver: ",
    "context deadline exceeded",
    "connection refused",
    "the server is currently unable to handle the request",
)
"""Parts of the error message of a request that has to be repeated. Matched by text, because the reason of condition
Ready is the same for errors that stay. The operator reports `failed` for 0.2 to 0.4 s whenever two of its own writes
collide (seen on 1.4)."""
SETTLES: Final = 2.0
"""Seconds after an acknowledged edit in which `successful` may still be about the spec before it. On 1.0.1 and 1.4
the operator took it back after 0.2 s at most, under load."""


class Count(NamedTuple):
    """Pods of one component. A PodCliqueScalingGroup reports only available pods, not ready ones.

    Attributes:
        replicas: Pods of the component.
        ready: Ready pods.
        available: Available pods.
        old: Pods that are not known to have the newest spec, from the largest of the pod counts.
    """

    replicas: int
    ready: int
    available: int
    old: int


class Status(NamedTuple):
    """The parts of `status` that are used. A value of a wrong type counts as absent.

    Attributes:
        state: `status.state`.
        words: The operator's message.
        counts: The counts by component.
        contradicted: Whether condition Ready is not True, or is about another generation, whatever the state is.
        unready: Whether condition Ready is exactly False, as it is while the state is pending.
        counting: Whether the CRD has counts of pods, so that a component without a count is not known to have pods.
            Every CRD with `observedGeneration` (1.0) has them, and so has v1beta1. The operator's version does not
            show it, because Helm leaves old CRDs.
        outdated: How the generation that the status names differs from the newest one, as the end of a sentence;
            empty if it names the newest one, or none.
        failed: Whether that generation failed, and not only one write.
        repeats: Whether one write failed, so that the newest spec may not have reached the pods.
        rolling: Whether a rolling update is in progress.
        edited: Whether the spec was changed since the object was created.
    """

    state: str
    words: str
    counts: Mapping[str, Count]
    contradicted: bool
    unready: bool
    counting: bool
    outdated: str
    failed: bool
    repeats: bool
    rolling: bool
    edited: bool

    @property
    def fresh(self) -> bool:
        """Whether the status is about the newest generation, as far as it names one."""
        return not self.outdated


def observe(deployment: Deployment, live: Object) -> Observation:
    """Return the phase, the replicas and the endpoint of a DynamoGraphDeployment."""
    status = _read(live)
    workers = pools(deployment.spec)
    phase, reason, message = _phase(live, status, workers)
    return Observation(
        phase=phase,
        reason=reason,
        message=message,
        replicas=_replicas(status, workers, serving=phase == "Running"),
        endpoint=Endpoint(
            f"{deployment.name}-{FRONTEND.lower()}",
            PORT,
            model=deployment.spec.served_name or "",
            apis=served_apis(deployment.spec),
        ),
        update_failed=phase == "Running" and status.failed,
        updating=phase == "Running" and not status.failed and _updating(status),
        unclear=status.rolling and _uncounted(status, workers),
        selector=_selector(deployment),
        acknowledged=None if status.fresh else False,
    )


def _selector(deployment: Deployment) -> str:
    """Return the labels of the worker pods; empty in disaggregated mode, where scaling.replicas scales nothing."""
    if deployment.spec.serving.mode != "aggregated":
        return ""
    return f"{GRAPH_LABEL}={deployment.name},{COMPONENT_LABEL}=worker"


def workloads(live: Object) -> list[str]:
    """Return the names of its components' Deployments, without the operator's suffix (sources §2.4)."""
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
    elif absent := [pool.role for pool in workers if not pool.replicas]:
        words = f"nothing serves without {' and '.join(absent)} workers, of which 0 are requested"
        return "Deploying", "Progressing", words
    elif _serves(status, workers):
        return "Running", "DeploymentReady", _running_message(status, workers)
    if status.failed:
        return "Failed", "Failed", status.words
    phase: ObservedPhase = "Deploying" if live.get("status") else "Pending"
    return phase, "Progressing", _waiting_message(status, workers)


def _serves(status: Status, workers: Sequence[Pool]) -> bool:
    """Check whether every component has a ready pod; if the operator does not count pods, the state decides."""
    return not _without_pods(status, workers) if status.counting else _successful(status)


def _without_pods(status: Status, workers: Sequence[Pool]) -> list[str]:
    """Return the components that need a pod, and of which no ready one is reported."""
    needed = [FRONTEND, *(pool.name for pool in workers if pool.replicas)]
    return [name for name in needed if name not in status.counts or not status.counts[name].ready]


def _updating(status: Status) -> bool:
    """Check whether pods of an earlier spec may serve, though the operator has seen the newest one."""
    return _rolls_out(status) or _awaits_success(status)


def _rolls_out(status: Status) -> bool:
    return status.rolling or any(pods.old for pods in status.counts.values())


def _awaits_success(status: Status) -> bool:
    """Check whether the operator has seen an edit, and does not report success for it."""
    return status.edited and status.fresh and (status.repeats or not _successful(status))


def _is_unclear(status: Status) -> bool:
    """Check whether the status explains neither the missing success nor a failure."""
    explained = status.failed or (status.state == "pending" and status.unready)
    return _awaits_success(status) and not explained


def _uncounted(status: Status, workers: Sequence[Pool]) -> bool:
    """Check whether the frontend has a count and a worker has none, as when a rolling update of 1.0 begins."""
    return FRONTEND in status.counts and any(pool.name not in status.counts for pool in workers)


def _gone(status: Status, workers: Sequence[Pool]) -> bool:
    """Check whether no worker has a pod any more. For a worker without counts, the state decides."""
    return all(
        pods.replicas == pods.ready == 0
        if (pods := status.counts.get(pool.name)) is not None
        else _successful(status)
        for pool in workers
    )


def _successful(status: Status) -> bool:
    return status.state == "successful" and status.fresh and not status.contradicted


def _replicas(status: Status, workers: Sequence[Pool], *, serving: bool) -> Replicas:
    """Return the sums over the workers. For a worker without counts, a serving graph has the requested number.

    Requests reach a worker only if the whole graph serves: through the frontend, and both prefill and decode. Pods
    beyond the requested number are not replicas: the operator adds old and new ones during an update.
    """
    ready = available = 0
    for pool in workers:
        if (pods := status.counts.get(pool.name)) is not None:
            ready += min(pods.ready, pool.replicas)
            available += min(pods.available, pool.replicas) if serving else 0
        elif serving:
            ready += pool.replicas
            available += pool.replicas
    desired = sum(pool.replicas for pool in workers)
    # Each count fits into the status, but a sum may not.
    return Replicas(*(min(number, MAX_INT32) for number in (desired, ready, available)))


def _running_message(status: Status, workers: Sequence[Pool]) -> str:
    if _successful(status) and not _updating(status) and not status.failed:
        return status.words
    replicas = _replicas(status, workers, serving=True)
    counted = f"{replicas.ready} of {replicas.desired} replicas ready{_surplus(status, workers)}"
    if status.fresh and _rolls_out(status):
        return f"{counted}, an update is in progress: {status.words}"
    if _is_unclear(status):
        return f"{counted}, it is unclear whether the newest spec serves: {status.words}"
    if status.failed:
        return f"{counted}, the Dynamo operator reports a failure: {status.words}"
    if _awaits_success(status):
        return f"{counted}, the Dynamo operator does not report success for the newest spec: {status.words}"
    if status.fresh:
        return f"{counted}: {status.words}"
    return f"{counted}; {_unseen(status)}"


def _surplus(status: Status, workers: Sequence[Pool]) -> str:
    """Mention the ready pods beyond the requested number, which the counts leave out."""
    extra = sum(
        max(0, status.counts[pool.name].ready - pool.replicas)
        for pool in workers
        if pool.name in status.counts
    )
    return f" and {extra} more pod{'' if extra == 1 else 's'}" if extra else ""


def _waiting_message(status: Status, workers: Sequence[Pool]) -> str:
    """Return the missing pods if the operator reports success, else the operator's words."""
    if not status.fresh:
        return _unseen(status)
    if status.state != "successful":
        return status.words
    if missing := _without_pods(status, workers) if status.counting else []:
        return f"Dynamo reports no ready pod of {' and '.join(missing)}, although it reports: {status.words}"
    return status.words if any(pool.replicas for pool in workers) else f"pods are left: {status.words}"


def _unseen(status: Status) -> str:
    """Return a clause about a status that is not about the newest generation, with the operator's words in it."""
    before = "" if status.state == "successful" else f"; before, it reported: {status.words}"
    return f"the Dynamo operator {status.outdated}{before}"


def _read(live: Object) -> Status:
    """Return the status of a graph. Never raises, whatever a newer operator writes."""
    status = mapping(live.get("status"))
    conditions = upstream_conditions(status)
    ready = conditions.get("Ready", UpstreamCondition())
    state = status.get("state", "")
    # no operator writes another type; users see the state, so only the type is named
    state = state if isinstance(state, str) else f"of type {type(state).__name__}"
    words = ready.message or ready.reason or (f"state {state}" if state else "nothing reported yet")
    counts, generation = _counts(status), mapping(live.get("metadata")).get("generation")
    stale = _outdated(status, ready, generation)
    rolling = mapping(status.get("rollingUpdate")).get("phase")
    if rolling == FAILED_ROLLING and ready.reason != ROLLOUT_FAILED:
        words = f"the rolling update failed: {words}"
    elif state == "failed" and ready.status == "True":
        words = f"state failed, although it reports: {words}"
    erred = state == "failed" or ready.reason == ROLLOUT_FAILED or rolling == FAILED_ROLLING
    passing = erred and any(part in words for part in PASSING)
    return Status(
        state,
        f"the Dynamo operator repeats a request that failed: {words}" if passing else words,
        counts,
        contradicted="Ready" in conditions
        and (ready.status != "True" or (not stale and ready.generation not in (0, generation))),
        unready=ready.status == "False",
        counting=any(name in status for name in COUNTED) or text(live.get("apiVersion")).endswith("/v1beta1"),
        outdated=stale,
        failed=erred and not passing and not stale,
        repeats=passing and not stale,
        rolling=ready.reason == IN_PROGRESS or (isinstance(rolling, str) and rolling not in ROLLED),
        edited=isinstance(generation, int) and generation > 1,
    )


def _outdated(status: Mapping[str, Any], ready: UpstreamCondition, generation: Any) -> str:
    """Return how the generation that the status names differs from the newest one; empty if it does not.

    On the 1.5 line, a failure updates only the generation of `Ready`.
    """
    seen = status.get("observedGeneration")
    if not isinstance(generation, int) or ("observedGeneration" not in status and not ready.generation):
        return ""
    newest = max(count(seen) or 0, ready.generation)
    return "" if newest == generation else outdated(newest or seen, generation)


def _counts(status: Mapping[str, Any]) -> dict[str, Count]:
    """Return `services` (v1alpha1, from 0.8) or `components` (v1beta1) by the rendered name."""
    stated = mapping(status.get("services")) or mapping(status.get("components"))
    return {name: _count(value) for name, value in stated.items() if isinstance(value, Mapping)}


def _count(value: Mapping[str, Any]) -> Count:
    replicas, updated, ready, available = (
        # A value that is no count shows no pod.
        (count(value[name]) or 0) if name in value else None
        for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    )
    pods = max(replicas or 0, ready or 0, available or 0)
    ready = (available if ready is None else ready) or 0
    return Count(
        replicas=replicas or 0,
        old=0 if updated is None else max(0, pods - updated),
        ready=ready,
        available=ready if available is None else min(available, ready),
    )
