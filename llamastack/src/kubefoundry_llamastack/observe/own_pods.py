"""Observes the services of providers that have pods of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubefoundry_llamastack.observe import containers, pods
from kubefoundry_llamastack.observe.deployments import counts, creation_refused
from kubefoundry_llamastack.observe.sidecars import Failure, ServiceState, described, failure_in
from kubefoundry_llamastack.render import provider_deployment
from kubefoundry_llamastack.render.provider_deployment import ProviderDeployment
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_sdk._api import pod_status
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import Object


@dataclass(frozen=True, slots=True)
class OwnPods:
    """The live objects of a service.

    Attributes:
        live: Its Deployment, None if it is missing or not ours.
        newest: The ReplicaSet that the Deployment rolls out.
        pods: Live pods of that ReplicaSet.
    """

    live: Object | None = None
    newest: Object | None = None
    pods: list[Object] = field(default_factory=list)


def states(cr: Distribution, observed: Mapping[str, OwnPods]) -> list[ServiceState]:
    """Return the state of each service, in the order of installation.

    Args:
        cr: The CR.
        observed: The live objects by provider id.
    """
    return [_state(item, observed.get(item.provider_id) or OwnPods()) for item in provider_deployment.of(cr)]


def _state(item: ProviderDeployment, found: OwnPods) -> ServiceState:
    statuses = [containers.status_of(pod, item.container) or {} for pod in found.pods]
    return ServiceState(
        item,
        ready=counts(found.live).available > 0,
        restarts=sum(int(status.get("restartCount") or 0) for status in statuses),
        failure=next(_failures(item, found), None),
    )


def _failures(item: ProviderDeployment, found: OwnPods) -> Iterator[Failure]:
    place = {"Deployment": item.name}
    if found.live is None:
        return
    if counts(found.live).desired == 0:
        # An autoscaler leaves 0 as it is, and the spec may not have a number beside it.
        namespace = found.live["metadata"]["namespace"]
        remedy = (
            "Set service.replicas of the provider to 1 or more."
            if item.spec.autoscaling is None
            else f"Scale it: kubectl scale -n {namespace} deployment {item.name} --replicas=1."
        )
        yield described(item, place, "ServiceNotReady", "has no pods, because it is scaled to 0", remedy)
    for pod in found.pods:
        status = pod.get("status") or {}
        if status.get("phase") in pod_status.FINISHED:
            continue
        if text := pods.describe_unscheduled(status):
            yield _of_text(item, place, "ServiceUnschedulable", text)
        own = containers.status_of(pod, item.container) or {}
        if failure := failure_in(item, pod, own, is_due=_has_been_ready(status, own)):
            yield failure
    if text := creation_refused(found.newest, len(found.pods)):
        yield _of_text(item, place, "ServiceNotReady", text)


def _has_been_ready(status: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    """Check whether a started container that is not ready was ready in this run.

    A container is started a moment before its first readiness check. Then its pod has not been ready since before the
    start.
    """
    since = (find(status.get("conditions"), "Ready") or {}).get("lastTransitionTime")
    began = (pod_status.running(own) or {}).get("startedAt")
    # A kubelet writes both times, whole seconds of its own clock, so they sort as text.
    return bool(own.get("started")) and (not since or not began or str(since) > str(began))


def _of_text(item: ProviderDeployment, place: Mapping[str, str], reason: str, text: str) -> Failure:
    """Return the failure of a text that ends with a remedy."""
    cause, _, remedy = text.partition("\nResolution: ")
    return described(item, place, reason, f"has no pod that runs. {cause}", remedy)
