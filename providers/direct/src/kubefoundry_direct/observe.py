"""The status of a Deployment in KubeFoundry's terms.

Source: k8s.io/api/apps/v1 DeploymentStatus, its conditions and reasons.

Available replicas serve. `updatedReplicas` have the newest template; while there are others, the previous spec still
serves in part. No count includes terminating pods.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from kubefoundry_direct.names import PORT, SELECTED_BY, service
from kubefoundry_direct.overrides import overrides_of
from kubefoundry_sdk import Deployment, Endpoint, Object, Observation, ObservedPhase, ReadyReason, Replicas
from kubefoundry_sdk.engine import served_apis
from kubefoundry_sdk.status import UpstreamCondition, count, mapping, outdated, upstream_conditions

LATE: Final = "ProgressDeadlineExceeded"
"""Reason of Progressing=False."""

POD_COUNTS: Final = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")

_REPLICA_SET: Final = re.compile(r'[Rr]eplica ?[Ss]et "([^"]+)"')
"""Finds the ReplicaSet of the newest spec in the message of Progressing. No field of a Deployment names it
(kubernetes/pkg/controller/deployment/progress.go and sync.go)."""

_REFUSED_POD: Final = re.compile(r'pods "(.+)-[^-"]*"')
"""Finds the ReplicaSet's name in the API server's refusal of a pod: the pod's name without its suffix. The
Deployment's condition has the refusal as text only."""


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a Deployment.

    Attributes:
        desired: Replicas that the spec asks for.
        replicas: Pods that are not terminating.
        updated: Pods with the newest template.
        ready: Pods that are ready.
        available: Pods that have been ready for `minReadySeconds`.
        refused: The API server's message about pods that it refuses to create; empty if there are none.
        late: Kubernetes' message about a rollout that makes no progress; empty if there is none.
        unseen: How the generation that the status names differs from the newest one, as the end of a sentence; empty
            if Kubernetes has processed the newest spec.
        paused: Whether somebody paused the Deployment, so that no change reaches its pods.
    """

    desired: int
    replicas: int
    updated: int
    ready: int
    available: int
    refused: str
    late: str
    unseen: str
    paused: bool

    @property
    def old(self) -> int:
        """Count the pods that are not known to have the newest template, from the largest of the pod counts."""
        return max(0, max(self.replicas, self.ready, self.available) - self.updated)


def observe(deployment: Deployment, live: Object) -> Observation:
    """Return the phase, the replicas and the endpoint of a Deployment."""
    status = read(live, deployment.spec.scaling.replicas)
    trouble = "; ".join(filter(None, (status.refused, status.late)))
    phase, reason, message = _verdict(status)
    resume = f"kubectl rollout resume deployment/{deployment.name} -n {deployment.namespace}"
    paused = f"paused: no change reaches its pods before {resume}"
    return Observation(
        phase=phase,
        reason=reason,
        message="; ".join(filter(None, (message, paused if status.paused else "", trouble))),
        replicas=Replicas(status.desired, *_within(status.desired, status.ready, status.available)),
        endpoint=_endpoint(deployment),
        update_failed=phase == "Running" and bool(status.late),
        updating=status.old > 0,
        selector=f"{SELECTED_BY}={deployment.name}",
        # The Deployment's controller always names the generation.
        acknowledged=False if status.unseen else None,
    )


def _endpoint(deployment: Deployment) -> Endpoint:
    """Return the endpoint. A command of the user's decides which name and which APIs its server has."""
    spec = deployment.spec
    if overrides_of(spec).command:
        return Endpoint(service(deployment.name), PORT)
    return Endpoint(service(deployment.name), PORT, model=spec.served_name or "", apis=served_apis(spec))


def _within(desired: int, *counts: int) -> list[int]:
    """Limit the counts to the requested number. A rollout has more pods for a while, and the message names them."""
    return [min(count, desired) if desired else count for count in counts]


def read(live: Object, default_replicas: int) -> Status:
    """Return the status of a Deployment. `default_replicas` is used if the Deployment does not set a number."""
    meta, spec, status = (mapping(live.get(name)) for name in ("metadata", "spec", "status"))
    replicas, updated, ready, available = (count(status.get(name)) or 0 for name in POD_COUNTS)
    progress = upstream_conditions(status).get("Progressing", UpstreamCondition())
    stated, generation = status.get("observedGeneration"), count(meta.get("generation")) or 0
    observed = count(stated)
    desired = count(spec.get("replicas"))
    return Status(
        desired=default_replicas if desired is None else desired,
        replicas=replicas,
        updated=updated,
        # an available replica is ready, even if somebody else writes the status
        ready=max(ready, available),
        available=available,
        refused=_refusal(live, updated),
        late=_message(progress) if progress.reason == LATE else "",
        unseen=outdated(stated, generation) if observed is None or observed < generation else "",
        paused=spec.get("paused") is True,
    )


def newest_replica_set(live: Object) -> str | None:
    """Return the name of the ReplicaSet of the newest spec, or None if the Deployment names none."""
    progress = upstream_conditions(mapping(live.get("status"))).get("Progressing", UpstreamCondition())
    match = _REPLICA_SET.search(progress.message)
    return match[1] if match else None


def _refusal(live: Object, updated: int) -> str:
    """Return the API server's refusal of a pod of the newest spec; empty if there is none."""
    failure = upstream_conditions(mapping(live.get("status"))).get("ReplicaFailure", UpstreamCondition())
    is_current = failure.status == "True" and not (updated and _is_of_earlier_spec(failure, live))
    return _message(failure) if is_current else ""


def _is_of_earlier_spec(failure: UpstreamCondition, live: Object) -> bool:
    """Check whether the refused pod has an earlier spec, whose ReplicaSet stays until a new pod is available.

    Not reliable before the newest spec has a pod: after a change back to an earlier spec, whose ReplicaSet exists,
    the Deployment names the previous ReplicaSet until its counts change (getNewReplicaSet in sync.go).
    """
    refused, newest = _REFUSED_POD.match(failure.message), newest_replica_set(live)
    return refused is not None and newest is not None and refused[1] != newest


def _verdict(status: Status) -> tuple[ObservedPhase, ReadyReason, str]:
    if status.desired == 0 and not status.unseen:
        if status.replicas == 0:
            return "Pending", "ScaledToZero", "Scaled to zero"
        return "Deploying", "Progressing", f"{_counted(status.replicas, 'pod')} terminating"
    if status.available:
        return "Running", "DeploymentReady", f"{_serving(status)}{_rollout(status)}"
    if status.refused or status.late:
        return "Failed", "Failed", _serving(status)
    if status.unseen and not status.replicas:
        return "Pending", "Progressing", f"Kubernetes' Deployment controller {status.unseen}"
    return "Deploying", "Progressing", f"{_serving(status)}{_rollout(status)}"


def _serving(status: Status) -> str:
    (available,) = _within(status.desired, status.available)
    extra = status.available - available
    surplus = f" and {_counted(extra, 'more pod')}" if extra else ""
    return f"{available} of {_counted(status.desired, 'replica')} available{surplus}"


def _rollout(status: Status) -> str:
    """Return the progress of the rollout; empty if every pod has the newest template."""
    old = status.old
    return f"; rolling out: {status.updated} updated, {old} of the previous spec" if old else ""


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _message(condition: UpstreamCondition) -> str:
    return condition.message or "no reason given"
