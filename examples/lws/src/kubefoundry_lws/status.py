"""Observe a LeaderWorkerSet.

It counts groups: one is ready once all its pods are. It has the conditions `Available`, `Progressing` and
`UpdateInProgress`, and never reports a failure, so pods explain why nothing serves. Releases before 0.8 have no
`observedGeneration`.
"""

from __future__ import annotations

from typing import Final

from kubefoundry_lws.engines import PORT
from kubefoundry_sdk import Deployment, Endpoint, Object, Observation, ObservedPhase, ReadyReason, Replicas
from kubefoundry_sdk.status import UpstreamCondition, count, mapping, text, upstream_conditions

KNOWN: Final = frozenset({"True", "False"})
LONGEST_SELECTOR: Final = 1024


def observe(deployment: Deployment, live: Object) -> Observation:
    """Return the set's status in KubeFoundry's terms."""
    status, desired = mapping(live.get("status")), deployment.spec.scaling.replicas
    ready, groups = (count(status.get(name)) or 0 for name in ("readyReplicas", "replicas"))
    updated = count(status.get("updatedReplicas"))
    conditions = upstream_conditions(status)
    phase, reason, message = _verdict(conditions, ready, desired)
    selector = text(status.get("hpaPodSelector"))
    return Observation(
        phase=phase,
        reason=reason,
        message=message,
        replicas=Replicas(desired, ready, ready),
        endpoint=Endpoint(f"{deployment.name}-leader", PORT, model=deployment.spec.served_name or ""),
        updating=conditions.get("UpdateInProgress", UpstreamCondition()).status == "True"
        or (updated is not None and updated < groups),
        selector=selector if len(selector) <= LONGEST_SELECTOR else "",
    )


def _verdict(
    conditions: dict[str, UpstreamCondition], ready: int, desired: int
) -> tuple[ObservedPhase, ReadyReason, str]:
    available = conditions.get("Available", UpstreamCondition())
    progressing = conditions.get("Progressing", UpstreamCondition())
    if desired == 0 and ready == 0 and conditions:
        return "Pending", "ScaledToZero", "Scaled to zero"
    if not conditions:
        return "Pending", "Progressing", "The LeaderWorkerSet is not taken up yet"
    if ready > 0:
        return "Running", "DeploymentReady", f"{ready} of {desired} groups serve"
    if available.status in KNOWN or progressing.status in KNOWN:
        words = available.words() if available.status == "False" else progressing.words()
        return "Deploying", "Progressing", words or "No group is ready yet"
    return "Deploying", "Unknown", "LeaderWorkerSet reports no condition that is known"
