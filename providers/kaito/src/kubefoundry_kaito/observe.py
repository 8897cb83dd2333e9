"""The state of a Workspace in KubeFoundry's terms, for every KAITO from 0.3 to 0.12.

Based on `api/v1beta1/condition_types.go`, and on the status that KAITO 0.12 was seen to write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_kaito import template
from kubefoundry_sdk import Deployment, Endpoint, Object, Observation, ObservedPhase, ReadyReason, Replicas
from kubefoundry_sdk.status import UpstreamCondition, count, mapping, upstream_conditions

SERVICE_PORT: Final = 80

FAILURES: Final = frozenset(
    {
        "ImagePullError",
        "ContainerCrashLoopBackOff",
        "ContainerOOMKilled",
        "ContainerStartError",
        "SASTokenFetchFailed",
        "WorkspaceInferenceStatusFailed",
    }
)
"""Reasons of `InferenceReady` that do not pass with time. The last one is from KAITO up to 0.8, the others from
0.12."""

STAGES: Final = (
    "NodeClaimReady",
    "MachineReady",
    "NodesReady",
    "ResourceReady",
    "ModelMirrorReady",
    "InferenceReady",
    "WorkspaceSucceeded",
)
"""Conditions in the order in which KAITO reaches them. The first that is not True shows the current stage."""

LAST_ERROR: Final = "last reconcile error"
"""KAITO appends this to messages when its reconcile fails. Such a message is more specific than the message of the
stage, so it is shown instead. Nothing else depends on it."""


Verdict = tuple[ObservedPhase, ReadyReason, str]

DELETING: Final[Verdict] = ("Deploying", "Progressing", "The Workspace is being deleted")


def observe(deployment: Deployment, workspace: Object) -> Observation:
    """Return Running as soon as the inference workload is ready, whatever KAITO's benchmark reports.

    KAITO never rolls out a template edit and never reports it, so `update_failed` is never set.
    """
    meta, status = mapping(workspace.get("metadata")), mapping(workspace.get("status"))
    conditions = upstream_conditions(status)
    phase, reason, message = (
        DELETING if meta.get("deletionTimestamp") else _verdict(conditions, _state(status))
    )
    # The status has no pod counts. The only replica is ready if inference is ready.
    ready = 1 if phase == "Running" else 0
    return Observation(
        phase=phase,
        reason=reason,
        message=message,
        replicas=Replicas(desired=deployment.spec.scaling.replicas, ready=ready, available=ready),
        endpoint=Endpoint(
            deployment.name,
            SERVICE_PORT,
            model=template.served_name(deployment.spec),
            apis=template.apis(deployment.spec),
        ),
        acknowledged=False if ready and _is_of_earlier_workspace(conditions, meta) else None,
    )


def _state(status: Mapping[str, Any]) -> str | None:
    """Return the Workspace's state; anything but a string counts as unknown."""
    state = status.get("state")
    return state if state is None or isinstance(state, str) else "in a state that is not a string"


def _verdict(conditions: Mapping[str, UpstreamCondition], state: str | None) -> Verdict:
    inference = conditions.get("InferenceReady")
    if inference is None:
        return _verdict_before_inference(conditions, state)
    if inference.status == "True":
        return "Running", "DeploymentReady", _while_running(inference, conditions)
    if inference.status == "False" and inference.reason in FAILURES:
        return "Failed", "Failed", inference.words()
    return (
        "Deploying",
        "Progressing" if inference.status == "False" else "Unknown",
        _waiting_for(conditions, state),
    )


def _verdict_before_inference(conditions: Mapping[str, UpstreamCondition], state: str | None) -> Verdict:
    """Return the verdict on a Workspace without condition `InferenceReady`."""
    if state == "Ready":
        return "Running", "DeploymentReady", "The Workspace is Ready"
    if not conditions and not state:
        return "Pending", "Progressing", "KAITO has not reported on the Workspace yet"
    return "Deploying", "Progressing" if conditions else "Unknown", _waiting_for(conditions, state)


def _is_of_earlier_workspace(conditions: Mapping[str, UpstreamCondition], meta: Mapping[str, Any]) -> bool:
    """Check whether inference was of an earlier Workspace of that name: a backup may restore a status."""
    stated = conditions.get("InferenceReady", UpstreamCondition()).generation
    return stated > (count(meta.get("generation")) or stated)


def _while_running(inference: UpstreamCondition, conditions: Mapping[str, UpstreamCondition]) -> str:
    """Return the workload's message, followed by the other problems."""
    problems = {
        (condition.reason, condition.message): condition.words()
        for name in (*STAGES, "BenchmarkCompleted")
        if (condition := conditions.get(name)) and condition.status == "False"
    }
    return "; ".join([inference.message or inference.words(), *problems.values()])


def _waiting_for(conditions: Mapping[str, UpstreamCondition], state: str | None) -> str:
    unmet = [
        condition for name in STAGES if (condition := conditions.get(name)) and condition.status != "True"
    ]
    if not unmet:
        return f"The Workspace is {state}" if state else "KAITO has not reported on inference yet"
    shown = next((condition for condition in unmet if LAST_ERROR in condition.message), unmet[0])
    return shown.words()
