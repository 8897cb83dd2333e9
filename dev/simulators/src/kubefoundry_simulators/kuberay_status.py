"""Build the status of a RayService, as KubeRay 1.6 and 1.7 were recorded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from kubefoundry_simulators.steps import NOW, Object, condition, spec

NO_RESOURCES: Final = {
    "desiredCPU": "0",
    "desiredGPU": "0",
    "desiredMemory": "0",
    "desiredTPU": "0",
    "head": {},
}
NO_CLUSTER: Final[Object] = {"rayClusterStatus": NO_RESOURCES}
LONGEST_NAME: Final = 47

Outcome = tuple[str, str, str]
"""Status, reason, message of a condition."""

READY: Final[Outcome] = ("True", "NonZeroServeEndpoints", "Number of serve endpoints is greater than 0")
INITIALIZING: Final[Outcome] = ("False", "Initializing", "RayService is initializing")
TIMED_OUT: Final[Outcome] = ("False", "InitializingTimeout", "RayService initialization timed out")
NO_PENDING: Final[Outcome] = (
    "False",
    "NoPendingCluster",
    "Active Ray cluster exists and no pending Ray cluster",
)
BOTH: Final[Outcome] = (
    "True",
    "BothActivePendingClustersExist",
    "Both active and pending Ray clusters exist",
)
NO_ACTIVE: Final[Outcome] = (
    "Unknown",
    "NoActiveCluster",
    "No active Ray cluster exists, and the RayService is not initializing. Please open a GitHub issue in the "
    "KubeRay repository.",
)


def report(
    service: Object,
    conditions: Mapping[str, Outcome | Object],
    *,
    active: Object = NO_CLUSTER,
    pending: Object = NO_CLUSTER,
    endpoints: int = 0,
) -> Object:
    """Return a status at the object's generation.

    Args:
        service: The RayService.
        conditions: Conditions by type. A condition that is an object already is not changed.
        active: Status of the active cluster.
        pending: Status of the pending cluster.
        endpoints: Number of Serve endpoints. With 0 the status does not report a running service.
    """
    generation = service["metadata"]["generation"]
    status: Object = {
        "activeServiceStatus": active,
        "pendingServiceStatus": pending,
        "conditions": [
            outcome if isinstance(outcome, dict) else condition(type_, *outcome, generation)
            for type_, outcome in conditions.items()
        ],
        "observedGeneration": generation,
        "lastUpdateTime": NOW,
    }
    if endpoints:
        status |= {"numServeEndpoints": endpoints, "serviceStatus": "Running"}
    return status


def refused(service: Object, message: str) -> Object:
    """Return the status of an invalid spec. Only the condition Ready changes; even observedGeneration stays."""
    before = service.get("status") or {}
    conditions = {item["type"]: item for item in before.get("conditions") or []}
    observed = conditions.get("Ready", {}).get("observedGeneration")
    conditions["Ready"] = condition("Ready", "False", "ValidationFailed", message, observed)
    return {
        "activeServiceStatus": NO_CLUSTER,
        "pendingServiceStatus": NO_CLUSTER,
        **before,
        "conditions": list(conditions.values()),
        "lastUpdateTime": NOW,
    }


def complaint(service: Object) -> str | None:
    """Return why the operator calls the object invalid, or None. Two reasons were recorded."""
    if len(service["metadata"]["name"]) > LONGEST_NAME:
        return (
            "The RayService metadata is invalid: RayService name should be no more than "
            f"{LONGEST_NAME} characters"
        )
    for group in worker_groups(service):
        minimum, maximum = group.get("minReplicas", 0), group.get("maxReplicas", 2**31 - 1)
        if minimum > maximum:
            return (
                f"The RayService spec is invalid: worker group {group['groupName']} has minReplicas {minimum} "
                f"greater than maxReplicas {maximum}"
            )
    return None


def named(cluster: str) -> Object:
    """Return the status of a cluster that has only a name yet."""
    return {"rayClusterName": cluster, "rayClusterStatus": NO_RESOURCES}


def running(
    service: Object, cluster: str, app: str | None, deployment: str = "", message: str = ""
) -> Object:
    """Return the status of a cluster whose pods all run.

    Args:
        service: The RayService.
        cluster: The RayCluster's name.
        app: Status of each Serve application; None for a cluster without applications.
        deployment: Status of each Serve deployment.
        message: Message of each application, with `{names}` for a deployment's name.
    """
    workers = worker_count(service)
    part: Object = {
        "rayClusterName": cluster,
        "rayClusterStatus": {
            **NO_RESOURCES,
            "desiredWorkerReplicas": workers,
            "availableWorkerReplicas": workers,
            "readyWorkerReplicas": workers,
            "head": {"podName": f"{cluster}-head", "serviceName": f"{cluster}-head-svc"},
            "observedGeneration": 1,
            "state": "ready",
        },
    }
    if app is not None:
        part["applicationStatuses"] = dict(_applications(service, app, deployment, message))
    return part


def worker_groups(service: Object) -> list[dict[str, Any]]:
    """Return the worker groups of the spec."""
    config = spec(service).get("rayClusterConfig") or {}
    return list(config.get("workerGroupSpecs") or [])


def worker_count(service: Object) -> int:
    """Return the number of worker pods. Ray's autoscaler starts one pod for each replica of a Serve deployment."""
    if (spec(service).get("rayClusterConfig") or {}).get("enableInTreeAutoscaling"):
        counts = [
            deployment.get("num_replicas", 1)
            for application in _serve_config(service).get("applications") or []
            for deployment in application.get("deployments") or []
        ]
        if counts:
            return sum(counts)
    return sum(group.get("replicas", 0) * group.get("numOfHosts", 1) for group in worker_groups(service))


def cluster_name(service: Object) -> str:
    """Return the RayCluster's name. Its suffix depends on the cluster hash and the object's uid."""
    meta = service["metadata"]
    digest = hashlib.sha256(f"{meta['uid']} {cluster_hash(service)}".encode()).hexdigest()
    return f"{meta['name']}-{digest[:5]}"


def cluster_hash(service: Object) -> str:
    """Return rayClusterConfig without replica bounds, tolerations and gates. Each change makes a new RayCluster."""
    config = json.loads(json.dumps(spec(service).get("rayClusterConfig") or {}))
    groups = [config.get("headGroupSpec") or {}, *(config.get("workerGroupSpecs") or [])]
    for group in groups:
        for name in ("replicas", "minReplicas", "maxReplicas", "scaleStrategy"):
            group.pop(name, None)
        template = group.get("template") or {}
        if not template.get("metadata"):
            # KubeRay hashes Go structs, which always have metadata.
            template.pop("metadata", None)
        pod = template.get("spec") or {}
        for name in ("tolerations", "schedulingGates"):
            pod.pop(name, None)
    return json.dumps(config, sort_keys=True)


def _applications(service: Object, app: str, deployment: str, message: str) -> Iterator[tuple[str, Object]]:
    for application in _serve_config(service).get("applications") or []:
        names = list(_deployments(application))
        text = message.format(names=names[:1])
        deployments = {
            name: {"status": deployment, **({"message": text} if app == "DEPLOY_FAILED" else {})}
            for name in names
        }
        status: Object = {"status": app, "serveDeploymentStatuses": deployments}
        yield application.get("name", "default"), {**status, "message": text} if text else status


def _deployments(application: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the Serve deployments: those that `ray.serve.llm` creates, and those in the config."""
    args = application.get("args") or {}
    for config in args.get("llm_configs") or []:
        yield f"LLMServer:{config['model_loading_config']['model_id']}"
    for role in ("prefill", "decode"):
        if f"{role}_config" in args:
            model = args[f"{role}_config"]["model_loading_config"]["model_id"]
            yield f"{role.capitalize()}:{model}"
    if args:
        yield "OpenAiIngress"
    for deployment in application.get("deployments") or []:
        yield deployment["name"]


def _serve_config(service: Object) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        content = yaml.load(spec(service).get("serveConfigV2") or "", Loader=loader)
    except yaml.YAMLError:
        return {}
    return content if isinstance(content, dict) else {}
