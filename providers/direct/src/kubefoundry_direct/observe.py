"""The status of a Deployment in our terms (k8s.io/api/apps/v1 DeploymentStatus, its conditions and reasons).

Available replicas serve. `updatedReplicas` have the newest template: while there are others, what serves is, in part,
the spec of before. Pods that are on their way out count nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubefoundry_direct.names import MODEL_LABEL, PORT, service
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.contract import (
    Deployment,
    Endpoint,
    Observation,
    ObservedPhase,
    ReadyReason,
    Replicas,
)
from kubefoundry_sdk.provider.upstream_status import UpstreamCondition, count, mapping, upstream_conditions

LATE: Final = "ProgressDeadlineExceeded"
"""Reason of Progressing=False."""


@dataclass(frozen=True, slots=True)
class Status:
    """refused: why pods are not created, in the API server's words. late: what Kubernetes says of a rollout that does
    not get on. unseen: whether the newest spec has not been looked at."""

    desired: int
    replicas: int
    updated: int
    ready: int
    available: int
    refused: str
    late: str
    unseen: bool

    @property
    def old(self) -> int:
        return max(0, self.replicas - self.updated)


def observe(deployment: Deployment, live: Object) -> Observation:
    status = read(live, deployment.spec.scaling.replicas)
    trouble = "; ".join(filter(None, (status.refused, status.late)))
    phase, reason, message = _verdict(status)
    return Observation(
        phase=phase,
        reason=reason,
        message="; ".join(filter(None, (message, trouble))),
        replicas=Replicas(status.desired, status.ready, status.available),
        endpoint=Endpoint(service(deployment.name), PORT),
        update_failed=phase == "Running" and bool(status.late),
        updating=status.old > 0,
        selector=f"{MODEL_LABEL}={deployment.name}",
    )


def read(live: Object, asked: int) -> Status:
    """asked: the replicas of a Deployment that says nothing of them."""
    meta, spec, status = (mapping(live.get(name)) for name in ("metadata", "spec", "status"))
    conditions = upstream_conditions(status)
    failure = conditions.get("ReplicaFailure", UpstreamCondition())
    progress = conditions.get("Progressing", UpstreamCondition())
    seen = status.get("observedGeneration")
    desired = count(spec.get("replicas"))
    available = count(status.get("availableReplicas")) or 0
    return Status(
        desired=asked if desired is None else desired,
        replicas=count(status.get("replicas")) or 0,
        updated=count(status.get("updatedReplicas")) or 0,
        # an available replica is a ready one, even where somebody else writes the status
        ready=max(count(status.get("readyReplicas")) or 0, available),
        available=available,
        refused=_said(failure) if failure.status == "True" else "",
        late=_said(progress) if progress.reason == LATE else "",
        unseen=not isinstance(seen, int) or seen < (count(meta.get("generation")) or 0),
    )


def _verdict(status: Status) -> tuple[ObservedPhase, ReadyReason, str]:
    if status.desired == 0 and not status.unseen:
        if status.replicas == 0:
            return "Pending", "ScaledToZero", "Scaled to zero"
        return "Deploying", "Progressing", f"{_pods(status.replicas)} terminating"
    if status.available:
        return "Running", "DeploymentReady", f"{_serving(status)}{_rollout(status)}"
    if status.refused or status.late:
        return "Failed", "Failed", _serving(status)
    if status.unseen and not status.replicas:
        return "Pending", "Progressing", "Kubernetes has not processed the Deployment yet"
    return "Deploying", "Progressing", f"{_serving(status)}{_rollout(status)}"


def _serving(status: Status) -> str:
    return f"{status.available} of {_replicas(status.desired)} available"


def _rollout(status: Status) -> str:
    """How far a change has come, and that a count has."""
    if status.old:
        return f"; rolling out: {status.updated} updated, {status.old} of the previous spec"
    return ""


def _replicas(count: int) -> str:
    return f"{count} replica" + ("" if count == 1 else "s")


def _pods(count: int) -> str:
    return f"{count} pod" + ("" if count == 1 else "s")


def _said(condition: UpstreamCondition) -> str:
    return condition.message or "no reason given"
