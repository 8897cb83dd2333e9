"""Reads a RayService's status without trusting it. No content of the status raises an exception.

Fields and values: sources §3.5 (seen on KubeRay 1.1 to 1.7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kubefoundry_sdk import Object
from kubefoundry_sdk.pod import QUEUE_LABEL
from kubefoundry_sdk.status import UpstreamCondition, count, mapping, outdated, text, upstream_conditions

MANAGER: Final = "kuberay-provider"
"""The field manager of this provider (contract §1)."""

FAILED_APPLICATION: Final = frozenset({"DEPLOY_FAILED", "UNHEALTHY"})
LOADING_APPLICATION: Final = frozenset({"NOT_STARTED", "DEPLOYING", "DEPLOY_FAILED"})
"""States of an application in which no engine serves, unless an older application does."""
SETTLED_ENGINE: Final = frozenset({"HEALTHY", "UPSCALING", "DOWNSCALING"})
"""States of a Serve deployment whose replicas are all of the newest spec."""
STOPPED_ENGINE: Final = frozenset({"UPDATING", "DEPLOY_FAILED", "UNHEALTHY"})
"""States of a Serve deployment in which at least one replica is stopped."""
KNOWN_APPLICATION: Final = FAILED_APPLICATION | {"NOT_STARTED", "DEPLOYING", "RUNNING", "DELETING"}
KNOWN_SERVICE: Final = frozenset(
    {
        "",
        "Running",
        "Restarting",
        "WaitForServeDeploymentReady",
        "FailedToGetOrCreateRayCluster",
        "FailedToGetServeDeploymentStatus",
        "FailedToUpdateServingPodLabel",
        "FailedToUpdateService",
    }
)
"""Values of `serviceStatus`. KubeRay 1.3 and later write only the first two, 1.2 and earlier all of them."""
GIVEN_UP: Final = "InitializingTimeout"
"""Reason of condition Ready after which KubeRay ignores every edit (seen on 1.6.2 and 1.7)."""
KNOWN_READY: Final = frozenset(
    {
        "",
        "Initializing",
        GIVEN_UP,
        "NonZeroServeEndpoints",
        "SuspendComplete",
        "SuspendInProgress",
        "ValidationFailed",
        "ZeroServeEndpoints",
    }
)
"""Reasons of condition Ready."""


class Application(NamedTuple):
    """A Serve application.

    Attributes:
        name: Its name.
        status: Its status.
        words: Its own message, followed by those of its deployments.
        deployments: The statuses of its deployments.
    """

    name: str
    status: str
    words: str
    deployments: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a RayService.

    Attributes:
        deleting: Whether the RayService is being deleted.
        empty: Whether the operator has reported no status.
        unseen: How the generation that the status names differs from the newest one, as the end of a sentence; empty
            if the operator has processed the newest one.
        service: The field `serviceStatus`.
        endpoints: Pods behind the Serve Service, including the head.
        workers: Ready workers of the active cluster; None if the operator does not report them.
        active: Applications of the active cluster.
        pending: Applications of the pending cluster.
        upgrading: Whether there is a second cluster.
        head: HeadPodReady of the active cluster.
        written: The time at which the provider last changed the RayService; empty if unknown.
        conditions: Conditions of the RayService by type.
    """

    deleting: bool
    empty: bool
    unseen: str
    service: str
    endpoints: int
    workers: int | None
    active: tuple[Application, ...]
    pending: tuple[Application, ...]
    upgrading: bool
    head: UpstreamCondition
    written: str
    conditions: Mapping[str, UpstreamCondition]

    def condition(self, type_: str) -> UpstreamCondition:
        """Return the condition of that type, or an empty one."""
        return self.conditions.get(type_, UpstreamCondition())


def read(live: Object) -> Status:
    """Return the status of a RayService; fields of a wrong type count as absent or zero."""
    meta = mapping(live.get("metadata"))
    status = mapping(live.get("status"))
    active = mapping(status.get("activeServiceStatus"))
    pending = mapping(status.get("pendingServiceStatus"))
    cluster = mapping(active.get("rayClusterStatus"))
    workers = _pod_count(cluster, "readyWorkerReplicas")
    return Status(
        deleting="deletionTimestamp" in meta,
        empty=not status,
        unseen=_unseen(status.get("observedGeneration"), meta.get("generation")),
        service=text(status.get("serviceStatus")),
        endpoints=count(status.get("numServeEndpoints")) or 0,
        workers=_pod_count(cluster, "availableWorkerReplicas") if workers is None else workers,
        active=_applications(active),
        pending=_applications(pending),
        upgrading=bool(text(pending.get("rayClusterName"))),
        head=upstream_conditions(cluster).get("HeadPodReady", UpstreamCondition()),
        written=_written(meta.get("managedFields")),
        conditions=upstream_conditions(status),
    )


def _unseen(stated: Any, generation: Any) -> str:
    is_seen = stated == generation and not isinstance(stated, bool)
    return "" if is_seen else outdated(stated, generation)


def _pod_count(counts: Mapping[str, Any], name: str) -> int | None:
    """Return the count of that name, None if it is absent. A value that is no count shows no pod."""
    return (count(counts[name]) or 0) if name in counts else None


def must_recreate(live: Object) -> bool:
    """Check whether only a new RayService can serve.

    That is so if the operator has given up, or reports a RayService as ready that Kueue has suspended.
    """
    ready = read(live).condition("Ready")
    return ready.reason == GIVEN_UP or (is_suspended_by_kueue(live) and ready.status == "True")


def is_suspended_by_kueue(live: Object) -> bool:
    """Check whether Kueue has suspended the RayService."""
    queue = mapping(mapping(live.get("metadata")).get("labels")).get(QUEUE_LABEL)
    cluster = mapping(mapping(live.get("spec")).get("rayClusterConfig"))
    return bool(queue) and cluster.get("suspend") is True


def clusters(live: Object) -> list[str]:
    """Return the names of the RayClusters that serve, or will serve, the RayService."""
    status = mapping(live.get("status"))
    named = [
        text(mapping(status.get(f"{state}ServiceStatus")).get("rayClusterName"))
        for state in ("active", "pending")
    ]
    return [name for name in dict.fromkeys(named) if name]


def _applications(cluster: Mapping[str, Any]) -> tuple[Application, ...]:
    stated = mapping(cluster.get("applicationStatuses"))
    return tuple(
        _application(str(name), value) for name, value in stated.items() if isinstance(value, Mapping)
    )


def _application(name: str, value: Mapping[str, Any]) -> Application:
    """Return an application with the messages of its deployments, because Serve's own message only names them."""
    deployments = {
        str(deployment): mapping(status)
        for deployment, status in mapping(value.get("serveDeploymentStatuses")).items()
    }
    messages = [text(value.get("message")), *(text(status.get("message")) for status in deployments.values())]
    return Application(
        name,
        text(value.get("status")),
        "; ".join(dict.fromkeys(text for text in messages if text)).replace(".; ", ". "),
        {deployment: text(status.get("status")) for deployment, status in deployments.items()},
    )


def _written(managed: Any) -> str:
    """Return the time of our last apply; empty if unknown."""
    times = [
        text(entry.get("time"))
        for entry in (managed if isinstance(managed, list) else ())
        if isinstance(entry, Mapping) and entry.get("manager") == MANAGER
    ]
    return max(times, default="")
