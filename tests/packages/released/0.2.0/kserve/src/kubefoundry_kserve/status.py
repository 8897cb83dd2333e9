"""Observe an LLMInferenceService.

Its conditions follow Knative: `Ready` is True if `WorkloadsReady` and `RouterReady` are. `PresetsCombined` does not
affect `Ready`, and is False if KServe cannot process the spec. The status does not count replicas.
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
"""Reasons of a workload that will not become ready by itself. All other reasons may pass."""

URL: Final = re.compile(r"https?://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[A-Za-z0-9._~%/-]*)?")
LONGEST: Final = 2048
"""Longest endpoint of a ModelDeployment, in characters."""

KNOWN: Final = frozenset({"True", "False", "Unknown"})


def observe(deployment: Deployment, live: Object) -> Observation:
    status, desired = mapping(live.get("status")), deployment.spec.scaling.replicas
    conditions = upstream_conditions(status)
    ready = conditions.get("Ready", UpstreamCondition())
    url = _url(text(status.get("url")))
    phase, reason, message = _verdict(conditions, ready, url)
    if desired == 0 and phase == "Running":
        phase, reason, message = "Pending", "ScaledToZero", "Scaled to zero"
    serving = desired if phase == "Running" else 0
    observed = count(status.get("observedGeneration"))
    generation = count(mapping(live.get("metadata")).get("generation"))
    return Observation(
        phase=phase,
        reason=reason,
        message=message,
        replicas=Replicas(desired, serving, serving),
        endpoint=Endpoint(url=url),
        updating=observed is not None and generation is not None and observed < generation,
    )


def _url(reported: str) -> str:
    """Return the URL, or an empty text if it is not the base of an API, which counts as not published yet."""
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
