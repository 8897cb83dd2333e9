"""The state of a CR's newest pods: a row for each external provider, and what prevents the server from running.

Only the newest ReplicaSet counts, and the worst of its pods: during a rollout the old pods say nothing about the
latest change (FR-028).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict

from kubefoundry_llamastack import confidential
from kubefoundry_llamastack.names import EXTRACT, INSTALL, MERGE
from kubefoundry_llamastack.observe import containers
from kubefoundry_llamastack.observe.containers import Place, Said
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_sdk.api import pod_status
from kubefoundry_sdk.api.kinds import Object

REVISION: Final = "deployment.kubernetes.io/revision"
_NUMBER: Final = re.compile("[0-9]{1,18}")
ORDER: Final = ("Failed", "Pending", "Installing", "Ready")
"""From worst to best."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What prevents the newest pods from serving. part: `install`, `extract`, `merge`, `preflight`, or `pod` for
    anything else. reason: of DeploymentReady."""

    part: str
    reason: str
    message: str


def newest(replica_sets: Iterable[Object], deployment_uid: str) -> Object | None:
    """The ReplicaSet that the Deployment rolls out, None while there is none. One that is being deleted is not."""
    own = [
        item
        for item in replica_sets
        if _owned(item, deployment_uid) and not item["metadata"].get("deletionTimestamp")
    ]
    return max(own, key=_revision, default=None)


def live_pods(pods: Iterable[Object], replica_set: Object | None) -> list[Object]:
    """The ReplicaSet's pods that are not terminating; failed (evicted) ones only if there is no other."""
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


def _revision(replica_set: Object) -> int:
    text = (replica_set["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if _NUMBER.fullmatch(text) else 0


def rows(cr: Distribution, pods: list[Object]) -> list[Object]:
    """One row for each external provider, in the order of installation, without transition times."""
    made = []
    seen = [(pod, containers.statuses(pod)) for pod in pods]
    for _, item in cr.spec.providers():
        container = f"{INSTALL}{item.provider_id}"
        found = worst(_install(pod, known.get(container), item.image) for pod, known in seen)
        message = found.message
        if found.phase == "Failed":
            facts = (("Provider", item.provider_id), ("Image", item.image), ("Init Container", container))
            message = containers.complete(message, facts)
        row: Object = {
            "providerId": item.provider_id,
            "image": item.image,
            "phase": found.phase,
            "initContainerName": container,
        }
        optional = {
            "message": message,
            "imageID": found.image_id,
            "package": found.package,
            "version": found.version,
        }
        made.append({**row, **{key: value for key, value in optional.items() if value}})
    return made


def _install(pod: Object, container: Mapping[str, Any] | None, image: str) -> Said:
    status = pod.get("status") or {}
    if status.get("phase") == "Failed":
        return Said("Failed", "Evicted", gone(status))
    found = containers.read(container, Place(image, "provider image", **_whose(pod)))
    if found.phase == "Pending" and (why := unschedulable(status)):
        return Said("Pending", message=why)
    words = {
        "Installing": "Installing provider packages",
        "Ready": found.message or "Provider installed successfully",
    }
    if found.phase in words:
        return Said(
            found.phase,
            message=words[found.phase],
            image_id=found.image_id,
            package=found.package,
            version=found.version,
        )
    return found


class _Whose(TypedDict):
    namespace: str
    pod: str


def _whose(pod: Object) -> _Whose:
    """Return the names that identify the pod."""
    meta = pod["metadata"]
    return {"namespace": str(meta.get("namespace")), "pod": str(meta.get("name"))}


def provider_types(cr: Distribution, pods: Iterable[Object]) -> dict[str, str]:
    """The type in each image's metadata by provider id, once one of the pods has installed it."""
    stated: dict[str, str] = {}
    for pod in pods:
        known = containers.statuses(pod)
        for _, item in cr.spec.providers():
            container = known.get(f"{INSTALL}{item.provider_id}")
            if found := containers.read(container, Place(item.image, "provider image")).provider_type:
                stated.setdefault(item.provider_id, found)
    return stated


def worst(found: Iterable[Said]) -> Said:
    """The worst of several; Pending if there is none."""
    return min(
        found,
        key=lambda item: ORDER.index(item.phase),
        default=Said("Pending", message="Waiting for a pod to be created"),
    )


def merge_warnings(pods: Iterable[Object]) -> str:
    """Warnings of the merge, from the first pod that has some."""
    starts = (
        containers.read(containers.status_of(pod, MERGE), Place("", "distribution image")) for pod in pods
    )
    return next((said.message for said in starts if said.phase == "Ready" and said.message), "")


def problem(cr: Distribution, pods: list[Object]) -> Problem | None:
    """The first problem that prevents one of the pods from serving, in the order of a pod's start."""
    for pod in pods:
        if found := _problem(cr, pod):
            return found
    return None


def _problem(cr: Distribution, pod: Object) -> Problem | None:
    status = pod.get("status") or {}
    if status.get("phase") == "Failed":
        return Problem("pod", "Evicted", gone(status))
    if why := unschedulable(status):
        return Problem("pod", "Unschedulable", why)
    server = cr.spec.server.container_spec.name
    image = _image(pod, server)
    whose = _whose(pod)
    distribution = Place(image, "distribution image", **whose)
    serving = Place(image, "distribution image", serves=True, confidential=confidential.held(cr), **whose)
    parts = [
        ("install", f"{INSTALL}{item.provider_id}", Place(item.image, "provider image", **whose))
        for _, item in cr.spec.providers()
    ]
    parts += [
        ("extract", EXTRACT, distribution),
        ("merge", MERGE, distribution),
        ("preflight", server, serving),
    ]
    known = containers.statuses(pod)
    for part, container, place in parts:
        found = containers.read(known.get(container), place)
        if found.phase == "Failed":
            # The tool did not write it, so it is the server's own error and not preflight's.
            is_server = part == "preflight" and not found.said
            label = "Container" if part == "preflight" else "Init Container"
            provider = container.removeprefix(INSTALL) if part == "install" else ""
            facts = (("Provider", provider), ("Image", place.image), (label, container))
            message = containers.complete(found.message, facts)
            return Problem("pod" if is_server else part, found.reason, message)
    return None


def _image(pod: Object, container: str) -> str:
    spec = pod.get("spec") or {}
    for item in spec.get("containers") or ():
        if item.get("name") == container:
            return str(item.get("image") or "")
    return ""


def gone(status: Mapping[str, Any]) -> str:
    """For a pod that has ended for good: evicted, or its node is lost."""
    reason, text = status.get("reason") or "Failed", status.get("message") or ""
    return (
        f"The pod has ended ({reason}): {text}\n"
        "Resolution: Free the resource that the message names, raise the limit (the operator's --provider-size-limit "
        "for provider packages), or let the pod run on another node."
    )


def unschedulable(status: Mapping[str, Any]) -> str:
    """Why no node accepts the pod; empty if one does."""
    if (found := pod_status.unscheduled(status)) is not None:
        reason, message = found
        if reason == pod_status.GATED:
            return (
                f"The pod is not scheduled: {message or reason}\n"
                "Resolution: Have the controller that set the scheduling gate, such as a job queue, admit the pod."
            )
        return (
            f"No node can run the pod: {message or reason}\n"
            "Resolution: Add a node with enough capacity, or request less in containerSpec.resources."
        )
    return ""
