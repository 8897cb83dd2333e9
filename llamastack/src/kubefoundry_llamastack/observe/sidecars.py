"""Observes the services of providers in a CR's newest pods.

Messages never quote a service: the operator does not know its secrets, so it cannot remove them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_llamastack.observe import containers
from kubefoundry_llamastack.render import sidecars
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_llamastack.render.service_container import ServiceContainer
from kubefoundry_llamastack.render.sidecars import Sidecar
from kubefoundry_sdk._api import pod_status
from kubefoundry_sdk._api.kinds import Object

NOT_STARTED: Final = frozenset({"StartError", "ContainerCannotRun"})
"""Reasons of an end whose message is the container runtime's, because the service's process never ran."""

KILLED: Final = frozenset({137, 143})
"""Exit codes of a process that SIGKILL or SIGTERM has ended."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a service does not work.

    Attributes:
        reason: Reason of the condition ProviderDegraded.
        cause: One line about the service.
        message: The cause, with facts and a remedy.
    """

    reason: str
    cause: str
    message: str


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The state of a service.

    Attributes:
        service: The service.
        ready: Whether the server can call it: its container is ready in every pod of the server, or one of its own
            pods is available.
        restarts: Restarts of its containers in all pods.
        failure: The first failure, None without any. A service that starts has none.
    """

    service: ServiceContainer
    ready: bool
    restarts: int
    failure: Failure | None


def states(cr: Distribution, pods: list[Object]) -> list[ServiceState]:
    """Return the state of each service, in the order of installation."""
    alive = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in pod_status.FINISHED]
    by_pod = [(pod, containers.statuses(pod)) for pod in alive]
    return [_state(sidecar, by_pod, cr.spec.server.container_spec.name) for sidecar in sidecars.of(cr)]


def _state(
    sidecar: Sidecar, by_pod: Sequence[tuple[Object, Mapping[str, Mapping[str, Any]]]], server: str
) -> ServiceState:
    """Return the state of a service in pods with their containers' statuses."""
    own = [statuses.get(sidecar.container) or {} for _, statuses in by_pod]
    failures = (
        failure_in(
            sidecar,
            pod,
            statuses.get(sidecar.container) or {},
            # The server starts once the service is ready.
            is_due=bool((statuses.get(server) or {}).get("started")),
        )
        for pod, statuses in by_pod
    )
    return ServiceState(
        sidecar,
        ready=bool(own) and all(status.get("ready") for status in own),
        restarts=sum(int(status.get("restartCount") or 0) for status in own),
        failure=next(filter(None, failures), None),
    )


def eviction_remedy(cr: Distribution, text: str) -> str:
    """Suggest a remedy for an eviction whose message names a volume or the container of a service.

    Return an empty text if it names neither.
    """
    for sidecar in sidecars.of(cr):
        owner = f"provider '{sidecar.provider_id}'"
        if f'"{sidecar.scratch_volume}"' in text:
            return f"Raise service.scratch of {owner}, or have its service write less to /tmp."
        if f'"{sidecar.volume}"' in text:
            return f"Have the service of {owner} write its files to /tmp: its socket's volume is small."
        if f"Container {sidecar.container} exceeded its local ephemeral storage limit" in text:
            return f"Raise ephemeral-storage in service.resources.limits of {owner}."
    return ""


def failure_in(
    item: ServiceContainer, pod: Object, own: Mapping[str, Any], *, is_due: bool
) -> Failure | None:
    """Return why the service does not work in this pod. Its last end counts until it has started again.

    Args:
        item: The service.
        pod: The pod.
        own: Status of the service's container.
        is_due: Whether the service should be ready by now. One that has just started need not be.
    """
    if own.get("ready"):
        return None
    meta = pod["metadata"]
    log = (
        f"See the container's log: kubectl logs -n {meta.get('namespace')} {meta['name']} -c {item.container}"
    )
    if failure := _waiting_failure(item, pod, *(pod_status.waiting(own) or ("", ""))):
        return failure
    end, is_running = pod_status.ended(own), pod_status.running(own) is not None
    if end and not (is_running and own.get("started")):
        return _ended(item, pod, end, log)
    if is_running and (end or is_due):
        remedy = f"It runs, but its health check fails. {log}"
        return _built(item, pod, "ServiceNotReady", "is not ready", remedy)
    return None


def _waiting_failure(item: ServiceContainer, pod: Object, reason: str, text: str) -> Failure | None:
    """Return why a waiting container cannot start, None if it may."""
    if reason in pod_status.PULL:
        remedy = (
            "Check service.image. If the registry requires credentials, add a Secret of type "
            "kubernetes.io/dockerconfigjson to imagePullSecrets of the pods' ServiceAccount."
        )
        return _built(item, pod, "ServiceImagePullFailed", f"has no image: {_detail(reason, text)}", remedy)
    if reason in pod_status.CONFIGURATION:
        remedy = containers.configuration_remedy(text, "service.command") or (
            "Correct what the message names in the provider's service, or use another image."
        )
        return _built(item, pod, "ServiceConfigInvalid", f"cannot start: {_detail(reason, text)}", remedy)
    return None


def _ended(item: ServiceContainer, pod: Object, end: Mapping[str, Any], log: str) -> Failure:
    code, reason = end.get("exitCode"), str(end.get("reason") or "")
    if reason == pod_status.OUT_OF_MEMORY:
        remedy = "Raise service.resources.limits.memory of the provider."
        text = "was killed, because it used more memory than its limit"
        return _built(item, pod, "ServiceOutOfMemory", text, remedy)
    if reason in NOT_STARTED:
        text = str(end.get("message") or "")
        remedy = "Correct service.command, or use an image that contains it."
        if "exec format error" in text:
            remedy = "The image is built for another processor architecture; use one for the node's."
        return _built(item, pod, "ServiceConfigInvalid", f"cannot start: {_detail(reason, text)}", remedy)
    remedy = f"{log} --previous"
    if code == 0:
        remedy = f"A service must run until it is stopped. {remedy}"
    elif code in KILLED:
        remedy = (
            "The kubelet ends a service whose health check fails, and one that is not healthy "
            f"{item.spec.health.start_seconds} s after its start (service.health.startSeconds). {remedy}"
        )
    return _built(item, pod, "ServiceCrashLoop", f"ended with exit code {code}", remedy)


def _detail(reason: str, text: str) -> str:
    return f"{reason}: {pod_status.one_line(text)}" if text else reason


def _built(item: ServiceContainer, pod: Object, reason: str, text: str, remedy: str) -> Failure:
    place = {"Pod": pod["metadata"]["name"], "Container": item.container}
    return described(item, place, reason, text, remedy)


def described(
    item: ServiceContainer, place: Mapping[str, str], reason: str, text: str, remedy: str
) -> Failure:
    """Return the failure with all its facts.

    Args:
        item: The service.
        place: Kind and name of the failed objects.
        reason: Reason of ProviderDegraded.
        text: What happened to the service.
        remedy: What to do.
    """
    cause = f"The service of provider '{item.provider_id}' {text}"
    facts = {
        "Provider": item.provider_id,
        "Mode": item.spec.mode,
        "Image": item.image,
        **place,
        "Resolution": remedy,
    }
    return Failure(reason, cause, "\n".join([cause, *(f"{key}: {value}" for key, value in facts.items())]))
