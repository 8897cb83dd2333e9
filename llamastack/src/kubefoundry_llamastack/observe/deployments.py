"""Reads the Deployment's status: how many pods serve, and why it gets none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import Object

Rollout = Literal["running", "complete", "stalled"]

POD_SECURITY: Final = "violates PodSecurity"
"""Words of the API server's refusal of a pod that its namespace's Pod Security level forbids."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of a Deployment's pods.

    Attributes:
        desired: Requested pods.
        available: Pods that serve.
        updated: Pods of the newest template.
        total: All pods.
        enough: Whether as many serve as a rollout always keeps.
        rollout: State of the newest rollout. A stalled one has passed the Deployment's deadline.
    """

    desired: int
    available: int
    updated: int
    total: int
    enough: bool
    rollout: Rollout = "running"

    @property
    def complete(self) -> bool:
        """Check whether all pods have the newest template and serve."""
        return self.desired <= self.available and self.desired <= self.updated == self.total


STATUS_COUNTS: Final = ("replicas", "availableReplicas", "updatedReplicas", "observedGeneration")


def counts(live: Object | None) -> Counts:
    """Return a Deployment's counts.

    Args:
        live: The Deployment, None if it does not exist.

    Returns:
        The counts. They are zeros for a missing Deployment. No pod is updated while the newest spec is unobserved.
    """
    if live is None:
        return Counts(0, 0, 0, 0, False)
    status: dict[str, Any] = live.get("status") or {}
    total, available, updated, observed = (int(status.get(name) or 0) for name in STATUS_COUNTS)
    is_observed = observed >= int(live["metadata"].get("generation") or 0)
    minimum = find(status.get("conditions"), "Available") or {}
    desired = int(live["spec"].get("replicas", 1))
    return Counts(
        desired=desired,
        available=available,
        updated=updated if is_observed else 0,
        total=total,
        enough=available > 0 and minimum.get("status") == "True",
        rollout=_rollout(status, all_updated=updated >= desired) if is_observed else "running",
    )


def _rollout(status: dict[str, Any], *, all_updated: bool) -> Rollout:
    progress = find(status.get("conditions"), "Progressing") or {}
    if progress.get("status") == "False":
        return "stalled"
    # With the strategy Recreate, the last rollout's reason remains while the old pods end.
    return "complete" if all_updated and progress.get("reason") == "NewReplicaSetAvailable" else "running"


def creation_refused(newest: Object | None, pods: int) -> str:
    """Describe why the newest ReplicaSet cannot create its pods, in the API server's words. Empty if it can.

    Causes are quotas, LimitRanges and Pod Security. The Deployment keeps repeating an older ReplicaSet's
    refusal long after the cause is gone.

    Args:
        newest: The newest ReplicaSet.
        pods: How many pods it has.
    """
    text = _failure(newest)
    replicas = ((newest or {}).get("spec") or {}).get("replicas")
    if text is None or pods >= int(1 if replicas is None else replicas):
        return ""
    return f"Pods cannot be created: {text}\nResolution: {_remedy(text)}"


def is_refused_by_restricted(newest: Object | None) -> bool:
    """Check whether the Pod Security level `restricted` refuses the newest ReplicaSet's pods."""
    return f'{POD_SECURITY} "restricted:' in (_failure(newest) or "")


def _failure(newest: Object | None) -> str | None:
    """Return the API server's words about pods that it refused, None if it refused none."""
    failure = find(((newest or {}).get("status") or {}).get("conditions"), "ReplicaFailure")
    if failure is None or failure.get("status") != "True":
        return None
    return str(failure.get("message") or failure.get("reason") or "")


def _remedy(text: str) -> str:
    if "exceeded quota" in text:
        return (
            "Request less in containerSpec.resources and in service.resources of providers, or have the namespace's "
            "quota raised."
        )
    if POD_SECURITY in text:
        return (
            "The operator sets the security contexts that the level restricted requires. If the message names "
            "volumes, remove them from podOverrides.volumes, or have the namespace's label "
            "pod-security.kubernetes.io/enforce changed."
        )
    if "LimitRange" in text or "usage per" in text or "limit to request ratio" in text:
        return (
            "Set containerSpec.resources (services of providers: service.resources; init containers: "
            "--init-resources) within the LimitRange."
        )
    if "serviceaccount" in text:
        return (
            "Create the ServiceAccount that the message names, or correct podOverrides.serviceAccountName (services "
            "of providers: service.serviceAccountName)."
        )
    return "Change what the message names, or contact the cluster's administrator."
