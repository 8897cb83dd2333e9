"""Reports a CR's newest pods: a row for each external provider, and the problem that stops the server.

Only the newest ReplicaSet counts, and the worst of its pods. During a rollout the old pods are not about the
latest change (FR-028).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypedDict

from kubefoundry_llamastack import confidential
from kubefoundry_llamastack.names import EXTRACT, INSTALL, MERGE
from kubefoundry_llamastack.observe import containers, sidecars
from kubefoundry_llamastack.observe.containers import ContainerReport, ContainerRole
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_sdk._api import pod_status
from kubefoundry_sdk._api.kinds import Object

REVISION: Final = "deployment.kubernetes.io/revision"
_NUMBER: Final = re.compile("[0-9]{1,18}")
ORDER: Final = ("Failed", "Pending", "Installing", "Ready")
"""From worst to best."""

REPEATED: Final = 3
SHORT_RUN: Final = 3600.0
"""Restarts of a server from which on it ends repeatedly, if its last run lasted no more than these seconds."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason why the newest pods do not serve.

    Attributes:
        part: `install`, `extract`, `merge`, `preflight`, or `pod` for anything else.
        reason: Reason of DeploymentReady.
        message: Text for users.
    """

    part: str
    reason: str
    message: str


def newest(replica_sets: Iterable[Object], deployment_uid: str) -> Object | None:
    """Return the ReplicaSet that the Deployment rolls out. Ignores ReplicaSets that are being deleted."""
    own = [
        item
        for item in replica_sets
        if _owned(item, deployment_uid) and not item["metadata"].get("deletionTimestamp")
    ]
    return max(own, key=revision, default=None)


def live_pods(pods: Iterable[Object], replica_set: Object | None) -> list[Object]:
    """Return the ReplicaSet's pods that are not terminating, sorted by name.

    Failed (evicted) pods count only if there is no other.
    """
    if replica_set is None:
        return []
    own = [
        pod
        for pod in pods
        if _owned(pod, replica_set["metadata"]["uid"]) and not pod["metadata"].get("deletionTimestamp")
    ]
    alive = [pod for pod in own if (pod.get("status") or {}).get("phase") not in ("Failed", "Succeeded")]
    return sorted(alive or own, key=lambda pod: str(pod["metadata"]["name"]))


def _owned(obj: Object, uid: str) -> bool:
    return any(item.get("uid") == uid for item in obj["metadata"].get("ownerReferences") or ())


def revision(obj: Object) -> int:
    """Return the revision of a ReplicaSet, or of the newest one of a Deployment. 0 if there is none yet."""
    text = (obj["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if _NUMBER.fullmatch(text) else 0


def rows(cr: Distribution, pods: list[Object]) -> list[Object]:
    """Return a row for each external provider, in the order of installation, without transition times."""
    result = []
    pod_states = [(pod, containers.statuses(pod)) for pod in pods]
    for _, item in cr.spec.providers():
        container = f"{INSTALL}{item.provider_id}"
        report = worst(
            _install(cr, pod, by_container.get(container), item.image) for pod, by_container in pod_states
        )
        message = report.message
        if report.phase == "Failed":
            facts = (("Provider", item.provider_id), ("Image", item.image), ("Init Container", container))
            message = containers.complete(message, facts)
        row: Object = {
            "providerId": item.provider_id,
            "image": item.image,
            "phase": report.phase,
            "initContainerName": container,
        }
        optional = {
            "message": message,
            "imageID": report.image_id,
            "package": report.package,
            "version": report.version,
        }
        result.append({**row, **{key: value for key, value in optional.items() if value}})
    return result


def _install(
    cr: Distribution, pod: Object, container: Mapping[str, Any] | None, image: str
) -> ContainerReport:
    status = pod.get("status") or {}
    if status.get("phase") == "Failed":
        return ContainerReport("Failed", "Evicted", describe_end(cr, status))
    report = containers.read(container, ContainerRole(image, "provider image", **_identity(pod)))
    if report.phase == "Pending" and (why := describe_unscheduled(status)):
        return ContainerReport("Pending", message=why)
    messages = {
        "Installing": "Installing provider packages",
        "Ready": report.message or "Provider installed successfully",
    }
    if report.phase in messages:
        return ContainerReport(
            report.phase,
            message=messages[report.phase],
            image_id=report.image_id,
            package=report.package,
            version=report.version,
        )
    return report


class _Identity(TypedDict):
    namespace: str
    pod: str


def _identity(pod: Object) -> _Identity:
    """Return the names that identify the pod."""
    meta = pod["metadata"]
    return {"namespace": str(meta.get("namespace")), "pod": str(meta.get("name"))}


def provider_types(cr: Distribution, pods: Iterable[Object]) -> dict[str, str]:
    """Return the type in each image's metadata by provider id, once one of the pods has installed it."""
    stated: dict[str, str] = {}
    for pod in pods:
        by_container = containers.statuses(pod)
        for _, item in cr.spec.providers():
            container = by_container.get(f"{INSTALL}{item.provider_id}")
            if provider_type := containers.read(
                container, ContainerRole(item.image, "provider image")
            ).provider_type:
                stated.setdefault(item.provider_id, provider_type)
    return stated


def worst(reports: Iterable[ContainerReport]) -> ContainerReport:
    """Return the worst report, Pending if there is none."""
    return min(
        reports,
        key=lambda item: ORDER.index(item.phase),
        default=ContainerReport("Pending", message="Waiting for a pod to be created"),
    )


def merge_warnings(pods: Iterable[Object]) -> str:
    """Return the merge's warnings, from the first pod that has some."""
    reports = (
        containers.read(containers.status_of(pod, MERGE), ContainerRole("", "distribution image"))
        for pod in pods
    )
    return next((report.message for report in reports if report.phase == "Ready" and report.message), "")


def problem(cr: Distribution, pods: list[Object]) -> Problem | None:
    """Return the first problem that prevents a pod from serving, in the order of a pod's start."""
    for pod in pods:
        if pod_problem := _problem(cr, pod):
            return pod_problem
    return None


def _problem(cr: Distribution, pod: Object) -> Problem | None:
    status = pod.get("status") or {}
    if status.get("phase") == "Failed":
        return Problem("pod", "Evicted", describe_end(cr, status))
    if why := describe_unscheduled(status):
        return Problem("pod", "Unschedulable", why)
    by_container = containers.statuses(pod)
    for part, container, role in _steps(cr, pod):
        report = containers.read(by_container.get(container), role)
        if report.phase == "Failed":
            # The tool did not write it, so it is the server's own error and not preflight's.
            is_server = part == "preflight" and not report.is_self_reported
            label = "Container" if part == "preflight" else "Init Container"
            provider = container.removeprefix(INSTALL) if part == "install" else ""
            facts = (("Provider", provider), ("Image", role.image), (label, container))
            message = containers.complete(report.message, facts)
            return Problem("pod" if is_server else part, report.reason, message)
    return None


def _steps(cr: Distribution, pod: Object) -> list[tuple[str, str, ContainerRole]]:
    """Return the steps of a pod's start, each with its container, in their order."""
    server = cr.spec.server.container_spec.name
    identity = _identity(pod)
    distribution = ContainerRole(_image(pod, server), "distribution image", **identity)
    return [
        *(
            (
                "install",
                f"{INSTALL}{item.provider_id}",
                ContainerRole(item.image, "provider image", **identity),
            )
            for _, item in cr.spec.providers()
        ),
        ("extract", EXTRACT, distribution),
        ("merge", MERGE, distribution),
        ("preflight", server, _serving(cr, pod)),
    ]


def _serving(cr: Distribution, pod: Object) -> ContainerRole:
    """Return the role of the server's container."""
    container = cr.spec.server.container_spec
    return ContainerRole(
        _image(pod, container.name),
        "distribution image",
        serves=True,
        confidential=confidential.has_secrets(cr),
        **_identity(pod),
        has_command=bool(container.command or container.args),
        suspects=tuple(item.provider_id for _, item in cr.spec.providers()),
    )


def describe_repeated_ends(cr: Distribution, pods: Iterable[Object], now: str) -> str:
    """Describe a server that starts but ends again and again. Empty if none does, or its present run has lasted.

    If it serves between two ends, no other condition lasts. The times of its last run are of one clock, the node's.
    """
    container = cr.spec.server.container_spec.name
    for pod in pods:
        status = containers.status_of(pod, container) or {}
        end = pod_status.ended(status)
        count = int(status.get("restartCount") or 0)
        seconds = _duration(end)
        if (
            count < REPEATED
            or seconds > SHORT_RUN
            or _has_lasted(status, now)
            or containers.is_ours(str(end.get("message") or "").strip())
        ):
            continue
        role = _serving(cr, pod)
        return (
            f"Container '{container}' of pod '{role.pod}' has restarted {count} times; its last run lasted "
            f"{seconds:.0f} s and ended with exit code {end.get('exitCode')}\n"
            f"Resolution: {containers.log_of_last_run(role, container)}"
        )
    return ""


def _has_lasted(status: Mapping[str, Any], now: str) -> bool:
    """Check whether the container's present run is no short one."""
    started = (pod_status.running(status) or {}).get("startedAt")
    return started is not None and _duration({"startedAt": started, "finishedAt": now}) > SHORT_RUN


def _duration(end: Mapping[str, Any]) -> float:
    """Return the seconds that a run lasted, infinity if that is unknown."""
    try:
        started, finished = (datetime.fromisoformat(str(end[key])) for key in ("startedAt", "finishedAt"))
        return (finished - started).total_seconds()
    except (KeyError, TypeError, ValueError):
        return math.inf


def _image(pod: Object, container: str) -> str:
    spec = pod.get("spec") or {}
    for item in spec.get("containers") or ():
        if item.get("name") == container:
            return str(item.get("image") or "")
    return ""


def describe_end(cr: Distribution, status: Mapping[str, Any]) -> str:
    """Describe a pod that has ended for good: evicted, or its node is lost."""
    reason, text = status.get("reason") or "Failed", status.get("message") or ""
    remedy = sidecars.eviction_remedy(cr, text) or (
        "Free the resource that the message names, raise the limit (the operator's --provider-size-limit "
        "for provider packages), or let the pod run on another node."
    )
    return f"The pod has ended ({reason}): {text}\nResolution: {remedy}"


def describe_unscheduled(status: Mapping[str, Any]) -> str:
    """Describe why no node accepts the pod. Empty if one does."""
    if (unscheduled := pod_status.unscheduled(status)) is not None:
        reason, message = unscheduled
        if reason == pod_status.GATED:
            return (
                f"The pod is not scheduled: {message or reason}\n"
                "Resolution: Have the controller that set the scheduling gate, such as a job queue, admit the pod."
            )
        return (
            f"No node can run the pod: {message or reason}\n"
            "Resolution: Add a node with enough capacity, or request less in containerSpec.resources and in "
            "service.resources of providers."
        )
    return ""
