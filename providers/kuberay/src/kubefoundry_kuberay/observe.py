"""The status of a RayService in KubeFoundry's terms (sources §3.5).

Running means that endpoints serve. KubeRay leaves Ready=True while an update fails, and reports ValidationFailed
while the old spec keeps serving: both are Running with the failure in the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubefoundry_kuberay.engine_kwargs import engines_per_worker
from kubefoundry_kuberay.roles import Role, roles, scaled_to_zero
from kubefoundry_kuberay.status import (
    FAILED_APPLICATION,
    GIVEN_UP,
    KNOWN_APPLICATION,
    KNOWN_READY,
    KNOWN_SERVICE,
    LOADING_APPLICATION,
    SETTLED_ENGINE,
    STOPPED_ENGINE,
    Application,
    Status,
    is_suspended_by_kueue,
    read,
)
from kubefoundry_sdk import Deployment, Endpoint, Object, Observation, ObservedPhase, ReadyReason, Replicas
from kubefoundry_sdk.engine import served_apis
from kubefoundry_sdk.pod import QUEUE_LABEL, is_label_value
from kubefoundry_sdk.spec import ModelDeploymentSpec
from kubefoundry_sdk.status import UpstreamCondition, mapping, text

PORT: Final = 8000
CLUSTER_LABEL: Final = "ray.io/cluster"
NODE_LABEL: Final = "ray.io/node-type"

USUAL: Final = {
    "Ready": "True",
    "UpgradeInProgress": "False",
    "RollbackInProgress": "False",
    "Suspending": "False",
    "Suspended": "False",
}
"""The status of each condition, if it is present, while the newest spec serves."""

Verdict = tuple[ObservedPhase, ReadyReason, str]


def observe(deployment: Deployment, live: Object) -> Observation:
    """Return the phase, the replicas and the endpoint of a RayService."""
    status = read(live)
    desired = sum(role.replicas for role in roles(deployment.spec))
    waiting = _waiting(status, live)
    serving = not waiting and _is_serving(status, roles(deployment.spec))
    ready = _ready(status, deployment.spec, desired) if serving else 0
    failure = _failure(status)
    phase, reason, message = (
        _running(status, failure, ready, desired)
        if serving
        else _not_serving(status, failure, waiting, zero=scaled_to_zero(deployment.spec))
    )
    return Observation(
        phase=phase,
        reason=reason,
        message=message,
        replicas=Replicas(desired, ready, ready),
        endpoint=Endpoint(
            f"{deployment.name}-serve-svc",
            PORT,
            model=deployment.spec.served_name or "",
            apis=served_apis(deployment.spec),
        ),
        update_failed=serving and failure is not None,
        updating=serving and failure is None and _updating(status),
        selector=_selector(deployment, live),
        # Every KubeRay from 1.1 on names the generation.
        acknowledged=False if status.unseen else None,
    )


def _waiting(status: Status, live: Object) -> str:
    """Return a sentence if Kueue has suspended the RayService, otherwise an empty text.

    A suspended RayService has no pods. KubeRay 1.6.2 then writes no status any more, because it finds no head. Kueue
    0.17 neither queues the RayService again nor frees its quota while Ready is True.
    """
    if not is_suspended_by_kueue(live):
        return ""
    words = f"suspended by Kueue until queue {live['metadata']['labels'][QUEUE_LABEL]} has quota"
    if status.condition("Ready").status != "True":
        return words
    return (
        f"{words}, but Kueue does not queue it again while KubeRay reports it as ready: set annotation "
        "kubefoundry.ai/refresh to another value to recreate the RayService"
    )


def _selector(deployment: Deployment, live: Object) -> str:
    """Return the labels of the serving cluster's workers, each of which is a replica unless several share a worker.

    Empty in disaggregated mode, where scaling.replicas scales nothing, and before a cluster serves. The selector is
    also empty if the cluster's name is no valid label value.
    """
    cluster = text(mapping(mapping(live.get("status")).get("activeServiceStatus")).get("rayClusterName"))
    spec = deployment.spec
    if spec.serving.mode != "aggregated" or engines_per_worker(spec, roles(spec)[0]) > 1:
        return ""
    if not cluster or not is_label_value(cluster):
        return ""
    return f"{CLUSTER_LABEL}={cluster},{NODE_LABEL}=worker"


def _is_serving(status: Status, parts: Sequence[Role]) -> bool:
    lost = status.deleting or status.workers == 0 or _head_lost(status)
    serves = _is_reported_as_serving(status) and status.endpoints > 0 and not lost
    return serves and not _single_engine_stopped(status, parts)


def _is_reported_as_serving(status: Status) -> bool:
    """Check whether KubeRay reports that the model serves.

    `serviceStatus` stays Running if an invalid edit turns Ready to False. Up to 1.2 it is the only sign.
    """
    return status.condition("Ready").status == "True" or status.service == "Running"


def _head_lost(status: Status) -> bool:
    """Check whether the head pod was lost and the model does not run again yet: KubeRay leaves Ready True meanwhile.

    Serve's configuration and every engine are lost with the head. A loading application is then not an update: the
    head became ready after Ready was reached and after the last edit. Seen on KubeRay 1.6.2; KubeRay up to 1.2 does
    not report it.
    """
    submitted = bool(status.active) or status.upgrading
    if status.head.status == "False":
        return not submitted
    ready, written, up = status.condition("Ready").since, status.written, status.head.since
    if not (ready and written and up >= ready and up > written):
        return False
    return not submitted or any(application.status in LOADING_APPLICATION for application in status.active)


def _single_engine_stopped(status: Status, parts: Sequence[Role]) -> bool:
    """Check whether a role has only one engine, which is being replaced, cannot start or is unhealthy.

    Serve stops an engine before it starts its successor, even if it is the only one
    (ray/serve/_private/deployment_state.py, Ray 2.56 and 2.60), and KubeRay leaves Ready True. On Ray 2.60, requests
    get no answer meanwhile, and 503 if the successor cannot start. Ray reports that replicas of the previous version
    keep running, but the only engine is gone. A deployment that only scales is not UPDATING.
    """
    alone = tuple(f"{role.prefix}:" for role in parts if role.replicas == 1)
    return any(
        engine in STOPPED_ENGINE and deployment.startswith(alone)
        for application in status.active
        for deployment, engine in application.deployments.items()
    )


def _updating(status: Status) -> bool:
    """Check whether engines of an earlier spec may serve, though KubeRay has seen the newest one."""
    return _rolls_out(status) or bool(_doubt(status))


def _rolls_out(status: Status) -> bool:
    """Check whether an update is in progress.

    Serve replaces the engines of an application one by one, and KubeRay a cluster after the new one serves. Both
    leave Ready True. `upgrading` is for KubeRay up to 1.2, which has no condition.
    """
    if status.upgrading or status.pending or status.condition("UpgradeInProgress").status == "True":
        return True
    return any(
        application.status != "RUNNING" or "UPDATING" in application.deployments.values()
        for application in status.active
    )


def _doubt(status: Status) -> str:
    """Return why the status does not show that the newest spec serves; empty if it does."""
    if contradictions := _contradictions(status):
        return "; ".join(contradictions)
    if status.service not in ("", "Running"):
        return f"serviceStatus is {status.service}"
    if not status.active:
        return "Serve reports no application"
    unsettled = [
        f"Serve deployment {name} is {state or 'without a status'}"
        for application in status.active
        for name, state in application.deployments.items()
        if state not in SETTLED_ENGINE
    ]
    return "; ".join(unsettled)


def _contradictions(status: Status) -> list[str]:
    """Return the conditions that do not have their usual status."""
    return [
        condition.words() if condition.status else f"{type_} has no status"
        for type_, usual in USUAL.items()
        if (condition := status.conditions.get(type_))
        and condition.status != usual
        # This reason stays after the user has corrected an edit, while the old spec serves (`_failure`).
        and not (type_ == "Ready" and condition.reason == "ValidationFailed")
    ]


def _ready(status: Status, spec: ModelDeploymentSpec, desired: int) -> int:
    """Return the number of serving replicas. `numServeEndpoints` is not that number, because it includes the head.

    While Serve does not report its application as RUNNING, at least one of the requested engines is missing.
    """
    engines = max(engines_per_worker(spec, role) for role in roles(spec))
    most = desired if status.workers is None else min(desired, status.workers * engines)
    if any(application.status != "RUNNING" for application in status.active):
        most = min(most, desired - 1)
    return max(1, most)


def _failure(status: Status) -> str | None:
    """Return the failure with the upstream's message, or None."""
    ready = status.condition("Ready")
    if ready.reason == GIVEN_UP:
        return (
            f"KubeRay gave up: {_detail(ready)}; change the spec, or set the annotation "
            "kubefoundry.ai/refresh, to have the RayService recreated"
        )
    # ValidationFailed stays after a correction until endpoints exist; the operator has processed the spec before that
    if ready.reason == "ValidationFailed" and ready.status != "True" and status.unseen:
        return f"KubeRay refuses the RayService: {_detail(ready)}"
    for application in (*status.pending, *status.active):
        if application.status in FAILED_APPLICATION:
            return _describe(application)
    rollback = status.condition("RollbackInProgress")
    if rollback.status == "True":
        return f"KubeRay rolls the update back: {_detail(rollback)}"
    return f"RayService is {status.service}" if status.service.startswith("FailedTo") else None


def _detail(condition: UpstreamCondition) -> str:
    return condition.message or condition.reason


def _running(status: Status, failure: str | None, ready: int, desired: int) -> Verdict:
    message = f"{ready} of {desired} replicas serve"
    upgrade = status.condition("UpgradeInProgress")
    if failure:
        message += f", the latest change failed: {failure}"
    elif status.unseen:
        message += f", the KubeRay operator {status.unseen}"
    elif _rolls_out(status):
        words = _detail(upgrade) if upgrade.status == "True" else ""
        applications = "; ".join(_describe(application) for application in (*status.active, *status.pending))
        message += (
            f", an update is in progress: {words or applications or 'a second RayCluster is being set up'}"
        )
    elif doubt := _doubt(status):
        message += f", it is unclear whether the newest spec serves: {doubt}"
    return "Running", "DeploymentReady", message


def _not_serving(status: Status, failure: str | None, waiting: str, *, zero: bool) -> Verdict:
    if waiting and not zero:
        return "Deploying", "Progressing", waiting
    if status.deleting:
        return "Deploying", "Progressing", "the RayService is being deleted"
    if status.empty:
        return "Pending", "Progressing", "waiting for the KubeRay operator to process the RayService"
    if verdict := _suspended(status, zero=zero):
        return verdict
    if failure:
        return "Failed", "Failed", failure
    if _head_lost(status):
        replacement = "; ".join(map(_describe, status.active)) or "KubeRay creates a new one"
        return "Deploying", "Progressing", f"the head pod was lost, and every engine with it: {replacement}"
    reason: ReadyReason = "Progressing" if _is_known(status) else "Unknown"
    return "Deploying", reason, _progress(status)


def _suspended(status: Status, *, zero: bool) -> Verdict | None:
    """Return the verdict on a suspended RayService, None if it is not suspended."""
    ready, suspended = status.condition("Ready"), status.condition("Suspended")
    if suspended.status != "True" and ready.reason != "SuspendComplete":
        return None
    words = suspended.message or ready.message or "RayService is suspended"
    if zero:
        return "Pending", "ScaledToZero", f"scaled to zero: {words}"
    return "Deploying", "Progressing", f"replicas are requested, but RayService is suspended: {words}"


def _progress(status: Status) -> str:
    ready = status.condition("Ready")
    # ValidationFailed may stay after a correction (`_failure`).
    condition = "" if ready.reason == "ValidationFailed" else _detail(ready)
    applications = "; ".join(_describe(application) for application in (*status.pending, *status.active))
    words = applications or condition or f"RayService is being set up ({status.service or 'no status yet'})"
    if not _is_reported_as_serving(status) or (status.endpoints and status.workers != 0):
        return words
    missing = "worker of the active RayCluster" if status.endpoints else "pod of its Service"
    return f"no {missing} is ready, though KubeRay says: {words}"


def _describe(application: Application) -> str:
    words = f": {application.words}" if application.words else ""
    return f"Serve application {application.name} is {application.status or 'without a status'}{words}"


def _is_known(status: Status) -> bool:
    return (
        status.service in KNOWN_SERVICE
        and status.condition("Ready").reason in KNOWN_READY
        and all(a.status in KNOWN_APPLICATION for a in (*status.pending, *status.active))
    )
