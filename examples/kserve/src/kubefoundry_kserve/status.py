"""What an LLMInferenceService says of itself, in KubeFoundry's terms.

Its conditions are Knative's: `Ready` is `WorkloadsReady` and `RouterReady`; `PresetsCombined` is apart from them, and
False where the spec cannot be taken up at all. Replicas are not counted in the status.
"""

from __future__ import annotations

import re
from typing import Final

from kubefoundry_sdk import (
    Deployment,
    Endpoint,
    Object,
    Observation,
    ObservedPhase,
    ReadyReason,
    Replicas,
    UpstreamCondition,
    count,
    mapping,
    text,
    upstream_conditions,
)

FINAL: Final = frozenset({"ProgressDeadlineExceeded", "ReplicaFailure"})
"""Reasons of a workload that will not get ready by itself; all others may pass."""

URL: Final = re.compile(r"https?://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[A-Za-z0-9._~%/-]*)?")
LONGEST: Final = 2048
"""Of an endpoint, as a ModelDeployment can have one."""

KNOWN: Final = frozenset({"True", "False", "Unknown"})


def observe(deployment: Deployment, live: Object) -> Observation:
    status, wanted = mapping(live.get("status")), deployment.spec.scaling.replicas
    conditions = upstream_conditions(status)
    ready = conditions.get("Ready", UpstreamCondition())
    url = _url(text(status.get("url")))
    phase, reason, message = _verdict(conditions, ready, url)
    if wanted == 0 and phase == "Running":
        phase, reason, message = "Pending", "ScaledToZero", "Scaled to zero"
    serving = wanted if phase == "Running" else 0
    seen = count(status.get("observedGeneration"))
    generation = count(mapping(live.get("metadata")).get("generation"))
    return Observation(
        phase=phase,
        reason=reason,
        message=message,
        replicas=Replicas(wanted, serving, serving),
        endpoint=Endpoint(url=url),
        updating=seen is not None and generation is not None and seen < generation,
    )


def _url(reported: str) -> str:
    """Empty for what is not the base of an API: it counts as not published yet."""
    return reported if len(reported) <= LONGEST and URL.fullmatch(reported) else ""


def _verdict(
    conditions: dict[str, UpstreamCondition], ready: UpstreamCondition, url: str
) -> tuple[ObservedPhase, ReadyReason, str]:
    presets, work = (
        conditions.get(name, UpstreamCondition()) for name in ("PresetsCombined", "WorkloadsReady")
    )
    if not conditions:
        return "Pending", "Progressing", "KServe has not processed the LLMInferenceService yet"
    if presets.status == "False":
        return "Failed", "Failed", presets.words()
    if ready.status not in KNOWN:
        return "Deploying", "Unknown", f"KServe says Ready={ready.status or 'nothing'}"
    if ready.status == "True":
        if url:
            return "Running", "DeploymentReady", "KServe serves the model"
        return "Deploying", "Progressing", "KServe has published no URL yet"
    if work.status == "False" and work.reason in FINAL:
        return "Failed", "Failed", work.words()
    return "Deploying", "Progressing", ready.words()
