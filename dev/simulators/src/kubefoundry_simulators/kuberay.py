"""The KubeRay operator, as 1.6.2 and the main branch that became 1.7 were recorded.

Seconds, reasons and messages are those of the recorded runs. The seconds include the operator's loop of 2 s.
"""

from __future__ import annotations

from typing import Any, Final

from kubefoundry_simulators.kuberay_status import (
    BOTH,
    INITIALIZING,
    NO_ACTIVE,
    NO_CLUSTER,
    NO_PENDING,
    READY,
    TIMED_OUT,
    Outcome,
    cluster_hash,
    cluster_name,
    complaint,
    named,
    refused,
    report,
    running,
    worker_count,
)
from kubefoundry_simulators.steps import (
    Create,
    Delete,
    Object,
    Operator,
    Report,
    Rewrite,
    Run,
    Step,
    failure,
    find_condition,
    runs,
    service,
    spec,
    with_finalizer,
    without_finalizer,
)

FINALIZER: Final = "ray.io/rayservice-finalizer"
FAILED: Final = "Failed to update the deployments {names}."
UNHEALTHY: Final = "The deployments {names} are UNHEALTHY."
SUSPENDING: Final[Outcome] = ("False", "SuspendInProgress", "RayService is suspending")
SUSPENDED: Final[Outcome] = ("False", "SuspendComplete", "RayService is suspended")


def adopt(ray: Object) -> list[Step]:
    """Add the finalizer and rewrite the worker groups in one update, which takes over their fields."""
    if FINALIZER in (ray["metadata"].get("finalizers") or []):
        return []
    return [Rewrite(0.02, lambda live: _filled(with_finalizer(live, FINALIZER)))]


def plan(ray: Object, before: Object | None) -> list[Step]:
    """Deploy. Later, edit in place, switch clusters or only acknowledge, which depends on the edited fields."""
    if failure(ray) == "frozen":
        return []
    message = complaint(ray)
    if message:
        return [Report(0.02, refused(ray, message))]
    ready = find_condition(ray, "Ready") or {}
    if ready.get("reason") == "InitializingTimeout":
        return []
    if spec(ray).get("suspend"):
        return _suspend(ray)
    active = _part(ray, "active").get("rayClusterName")
    if not active:
        return _start(ray, ready)
    if before is not None and cluster_hash(before) != cluster_hash(ray):
        return _switch(ray, active)
    return _edit_in_place(ray, before, active)


def _edit_in_place(ray: Object, before: Object | None, active: str) -> list[Step]:
    """Deploy another Serve configuration to the active cluster, or only acknowledge the generation."""
    served = _serving(ray, running(ray, active, "RUNNING", "HEALTHY"))
    unchanged = {**served, "activeServiceStatus": _part(ray, "active")}
    requested_failure = failure(ray)
    if before is None or (_config(before), failure(before)) == (_config(ray), requested_failure):
        return [Report(0.02, unchanged)]
    deploying = _serving(ray, running(ray, active, "DEPLOYING", "UPDATING"))
    # observedGeneration follows at once, while the application still shows the earlier status.
    steps: list[Step] = [Report(0.02, unchanged), Report(1.3, deploying)]
    return steps if requested_failure == "updating" else [*steps, *_outcome(ray, active)]


def leave(ray: Object) -> list[Step]:
    """Remove the finalizer. The garbage collector deletes the Services."""
    return [Rewrite(0.05, lambda live: without_finalizer(live, FINALIZER))]


def _start(ray: Object, ready: Object) -> list[Step]:
    """Deploy, or try again. A stale ValidationFailed stays until endpoints exist."""
    stale = ready.get("reason") == "ValidationFailed"
    conditions: dict[str, Outcome | Object] = {
        "Ready": ready if stale else INITIALIZING,
        "UpgradeInProgress": NO_ACTIVE if stale else INITIALIZING,
    }
    name = ray["metadata"]["name"]
    pending_cluster = _part(ray, "pending").get("rayClusterName")
    cluster = pending_cluster or cluster_name(ray)
    steps: list[Step] = (
        [] if pending_cluster else [Report(0.1, report(ray, conditions, pending=named(cluster)))]
    )
    if failure(ray) == "initializing-timeout":
        timed_out = {"Ready": TIMED_OUT, "UpgradeInProgress": TIMED_OUT}
        return [*steps, Report(30.0, report(ray, timed_out))]
    deploying = running(ray, cluster, "DEPLOYING", "UPDATING")
    steps.append(Report(1.3 if pending_cluster else 4.2, report(ray, conditions, pending=deploying)))
    if failure(ray) == "loading":
        return steps
    if failure(ray) == "deploy-failed":
        failed = running(ray, cluster, "DEPLOY_FAILED", "DEPLOY_FAILED", FAILED)
        return [*steps, Report(3.6, report(ray, conditions, pending=failed))]
    up = running(ray, cluster, "RUNNING", "HEALTHY")
    steps += [
        Run(0.0, _workload(ray)),
        Create(2.0, service(ray, f"{name}-head-svc", _HEAD_PORTS, _selector(cluster, "head"), headless=True)),
        Create(0.01, service(ray, f"{name}-serve-svc", {"serve": (8000, 8000)}, _selector(cluster, "serve"))),
        Report(0.01, report(ray, {**conditions, "UpgradeInProgress": NO_PENDING}, active=up)),
        Report(0.06, _serving(ray, up)),
    ]
    return [*steps, *_outcome(ray, cluster)] if failure(ray) == "unhealthy" else steps


def _outcome(ray: Object, cluster: str) -> list[Step]:
    """Return the end of a deploy on a serving cluster. Ready stays True even if the application fails."""
    if failure(ray) == "deploy-failed":
        failed = running(ray, cluster, "DEPLOY_FAILED", "DEPLOY_FAILED", FAILED)
        return [Report(2.0, _serving(ray, failed))]
    steps: list[Step] = [
        # An edit in place does not change the running cluster, only the application.
        Run(0.0, {**(runs(ray) or _workload(ray)), "serve": _config(ray)}),
        Report(2.1, _serving(ray, running(ray, cluster, "RUNNING", "HEALTHY"))),
    ]
    if failure(ray) == "unhealthy":
        unhealthy = running(ray, cluster, "UNHEALTHY", "UNHEALTHY", UNHEALTHY)
        steps.append(Report(10.2, _serving(ray, unhealthy)))
    return steps


def _switch(ray: Object, active: str) -> list[Step]:
    """Start a second cluster beside the serving cluster, whose application statuses are missing meanwhile."""
    cluster = cluster_name(ray)
    conditions = {"Ready": READY, "UpgradeInProgress": BOTH}
    old = running(ray, active, None)
    endpoints = worker_count(ray) + 1

    def both(pending: Object) -> Object:
        return report(ray, conditions, active=old, pending=pending, endpoints=endpoints)

    steps: list[Step] = [
        Report(0.02, both(named(cluster))),
        Report(1.0, both(running(ray, cluster, "DEPLOYING", "UPDATING"))),
    ]
    if failure(ray) == "deploy-failed":
        failed = running(ray, cluster, "DEPLOY_FAILED", "DEPLOY_FAILED", FAILED)
        return [*steps, Report(3.6, both(failed))]
    serving = _serving(ray, running(ray, cluster, "RUNNING", "HEALTHY"))
    return [*steps, Run(3.6, _workload(ray)), Report(0.0, serving)]


def _suspend(ray: Object) -> list[Step]:
    name = ray["metadata"]["name"]
    on_the_way = {"Ready": SUSPENDING, "Suspending": ("True", *SUSPENDING[1:])}
    done = {"Ready": SUSPENDED, "Suspended": ("True", *SUSPENDED[1:])}
    return [
        Report(0.02, report(ray, on_the_way)),
        Delete(2.0, f"{name}-head-svc"),
        Delete(0.01, f"{name}-serve-svc"),
        Run(0.0, {}),
        Report(2.0, report(ray, done)),
    ]


def _serving(ray: Object, active: Object) -> Object:
    conditions = {"Ready": READY, "UpgradeInProgress": NO_PENDING}
    # The head pod is an endpoint, too.
    return report(ray, conditions, active=active, endpoints=worker_count(ray) + 1)


def _part(ray: Object, which: str) -> dict[str, Any]:
    """Return the status of the `active` or the `pending` cluster."""
    status = ray.get("status") or {}
    part: dict[str, Any] = status.get(f"{which}ServiceStatus") or NO_CLUSTER
    return part


def _workload(ray: Object) -> Object:
    """Return the cluster and the application of the current spec."""
    return {"cluster": spec(ray).get("rayClusterConfig"), "serve": _config(ray)}


def _config(ray: Object) -> str | None:
    config: str | None = spec(ray).get("serveConfigV2")
    return config


_HEAD_PORTS: Final = {
    "client": (10001, 10001),
    "dashboard": (8265, 8265),
    "gcs-server": (6379, 6379),
    "metrics": (8080, 8080),
    "serve": (8000, 8000),
}


def _selector(cluster: str, role: str) -> dict[str, str]:
    if role == "head":
        return {"ray.io/cluster": cluster, "ray.io/node-type": "head"}
    return {"ray.io/cluster": cluster, "ray.io/serve": "true"}


def _filled(ray: Object) -> Object:
    """Add the empty objects that a Go client writes back for structs without `omitempty`."""
    config = dict(spec(ray).get("rayClusterConfig") or {})
    if "headGroupSpec" in config:
        config["headGroupSpec"] = _group(config["headGroupSpec"])
    if "workerGroupSpecs" in config:
        config["workerGroupSpecs"] = [
            {"scaleStrategy": {}, **_group(group)} for group in config["workerGroupSpecs"]
        ]
    return {**ray, "spec": {**spec(ray), "rayClusterConfig": config}}


def _group(group: dict[str, Any]) -> dict[str, Any]:
    return {**group, "template": {"metadata": {}, **(group.get("template") or {})}}


OPERATOR: Final = Operator(
    name="kuberay",
    crd="rayservices.ray.io",
    manager="kuberay-operator",
    adopt=adopt,
    plan=plan,
    leave=leave,
)
