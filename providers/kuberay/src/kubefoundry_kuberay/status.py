"""What a RayService's status says, read without trust: whatever is there, reading never raises.

Fields and values: sources §3.5 (KubeRay 1.1 to 1.7, seen running).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kubefoundry_sdk import Object
from kubefoundry_sdk.api.fields import MAX_INT32
from kubefoundry_sdk.api.names import provider_manager

MANAGER: Final = provider_manager("kuberay")

FAILED_APPLICATION: Final = frozenset({"DEPLOY_FAILED", "UNHEALTHY"})
LOADING_APPLICATION: Final = frozenset({"NOT_STARTED", "DEPLOYING", "DEPLOY_FAILED"})
"""An application of which no engine serves unless an older one does."""
STOPPED_ENGINE: Final = frozenset({"UPDATING", "DEPLOY_FAILED", "UNHEALTHY"})
"""A Serve deployment of which one replica is stopped, or more."""
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
"""`serviceStatus`: the first two of KubeRay 1.3 and later, all of them of 1.2 and earlier."""
GIVEN_UP: Final = "InitializingTimeout"
"""Reason of condition Ready after which KubeRay looks at no edit any more (seen of 1.6.2 and 1.7)."""
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


class Condition(NamedTuple):
    """since: when its status became what it is, as Kubernetes writes times."""

    status: str = ""
    reason: str = ""
    message: str = ""
    since: str = ""


class Application(NamedTuple):
    """A Serve application. words: its own message, then those of its deployments. deployments: their statuses."""

    name: str
    status: str
    words: str
    deployments: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Status:
    """endpoints: pods behind the Serve Service, the head among them. workers: ready ones of the active cluster.

    unseen: whether the operator has not taken up this generation. active, pending: applications there.
    upgrading: whether there is a second cluster. head: HeadPodReady of the active cluster. written: when the provider
    changed the RayService last.
    """

    deleting: bool
    empty: bool
    unseen: bool
    service: str
    endpoints: int
    workers: int | None
    active: tuple[Application, ...]
    pending: tuple[Application, ...]
    upgrading: bool
    head: Condition
    written: str
    conditions: Mapping[str, Condition]

    def condition(self, type_: str) -> Condition:
        return self.conditions.get(type_, Condition())


def read(live: Object) -> Status:
    meta = _mapping(live.get("metadata"))
    status = _mapping(live.get("status"))
    active = _mapping(status.get("activeServiceStatus"))
    pending = _mapping(status.get("pendingServiceStatus"))
    cluster = _mapping(active.get("rayClusterStatus"))
    workers = _count(cluster.get("readyWorkerReplicas"))
    return Status(
        deleting="deletionTimestamp" in meta,
        empty=not status,
        unseen=status.get("observedGeneration") != meta.get("generation"),
        service=_text(status.get("serviceStatus")),
        endpoints=_count(status.get("numServeEndpoints")) or 0,
        workers=_count(cluster.get("availableWorkerReplicas")) if workers is None else workers,
        active=_applications(active),
        pending=_applications(pending),
        upgrading=bool(_text(pending.get("rayClusterName"))),
        head=_conditions(cluster.get("conditions")).get("HeadPodReady", Condition()),
        written=_written(meta.get("managedFields")),
        conditions=_conditions(status.get("conditions")),
    )


def must_recreate(live: Object) -> bool:
    return read(live).condition("Ready").reason == GIVEN_UP


def clusters(live: Object) -> list[str]:
    """Names of the RayClusters that serve, or are to serve, the RayService."""
    status = _mapping(live.get("status"))
    named = [
        _text(_mapping(status.get(f"{which}ServiceStatus")).get("rayClusterName"))
        for which in ("active", "pending")
    ]
    return [name for name in dict.fromkeys(named) if name]


def _applications(cluster: Mapping[str, Any]) -> tuple[Application, ...]:
    stated = _mapping(cluster.get("applicationStatuses"))
    return tuple(
        _application(str(name), value) for name, value in stated.items() if isinstance(value, Mapping)
    )


def _application(name: str, value: Mapping[str, Any]) -> Application:
    """Serve's own message of a failed application only names its deployments: theirs say why."""
    deployments = {
        str(deployment): _mapping(told)
        for deployment, told in _mapping(value.get("serveDeploymentStatuses")).items()
    }
    said = [_text(value.get("message")), *(_text(told.get("message")) for told in deployments.values())]
    return Application(
        name,
        _text(value.get("status")),
        "; ".join(dict.fromkeys(text for text in said if text)).replace(".; ", ". "),
        {deployment: _text(told.get("status")) for deployment, told in deployments.items()},
    )


def _conditions(stated: Any) -> dict[str, Condition]:
    found = {}
    for item in stated if isinstance(stated, list) else ():
        if isinstance(item, Mapping):
            found[_text(item.get("type"))] = Condition(
                _text(item.get("status")),
                _text(item.get("reason")),
                _text(item.get("message")),
                _text(item.get("lastTransitionTime")),
            )
    return found


def _written(managed: Any) -> str:
    """When something of ours was applied last; empty where that is not told."""
    times = [
        _text(entry.get("time"))
        for entry in (managed if isinstance(managed, list) else ())
        if isinstance(entry, Mapping) and entry.get("manager") == MANAGER
    ]
    return max(times, default="")


def _count(value: Any) -> int | None:
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INT32 else None
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
