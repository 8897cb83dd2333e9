"""The status of a CR: a pure function of what is known about it (sources §5.1, §5.2; FR-028)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubefoundry_llamastack import model_deployments, reasons
from kubefoundry_llamastack.disclosure import disclosed
from kubefoundry_llamastack.distribution import IMAGES, active
from kubefoundry_llamastack.model_deployments import Resolved
from kubefoundry_llamastack.observe import deployments, pods
from kubefoundry_llamastack.observe.containers import status_of
from kubefoundry_llamastack.observe.deployments import Counts
from kubefoundry_llamastack.observe.pods import Problem
from kubefoundry_llamastack.reasons import condition
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_sdk.api import pod_status
from kubefoundry_sdk.api.conditions import Condition, find
from kubefoundry_sdk.api.kinds import Object
from llamastack_providers import apis

DUPLICATE = "DuplicateProviderId"
PARTS = {
    "install": "ProviderFailed",
    "extract": "ConfigExtractFailed",
    "merge": "ConfigMergeFailed",
    "preflight": "PreflightFailed",
}
"""Reason of ExternalProvidersReady, by the step of the pod's start that failed."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why something was not written. type: the condition that reports it."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The server's answer to the operator. providers: None while it has not answered."""

    providers: list[Object] | None = None
    version: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """The input of a status.

    live: the Deployment, ours.
    newest: the ReplicaSet that it rolls out.
    pods: that one's live pods.
    claim, service, ingress: as they are now.
    """

    cr: Distribution
    live: Object | None = None
    newest: Object | None = None
    pods: list[Object] = field(default_factory=list)
    obstacles: tuple[Obstacle, ...] = ()
    resolved: list[Resolved] = field(default_factory=list)
    answer: Answer | None = None
    claim: Object | None = None
    service: Object | None = None
    ingress: Object | None = None
    operator_version: str = ""


def status(seen: Seen, before: Mapping[str, Any], now: str) -> Object:
    """The new status, conditions without transition times. before: the live status; now: RFC 3339."""
    cr = seen.cr
    counts = deployments.counts(seen.live)
    rows = pods.rows(cr, seen.pods)
    problem = pods.problem(cr, seen.pods)
    refused = deployments.creation_refused(seen.newest, len(seen.pods))
    conditions = [
        _deployment(seen, counts, problem, refused),
        *_providers(seen, rows, problem),
        *_models(seen),
        *_storage(seen),
        *_service(seen),
        _health(seen, counts),
    ]
    failing = bool(
        refused or problem or any(item.type == reasons.DEPLOYMENT_READY for item in seen.obstacles)
    )
    failing = failing or any(item.reason == DUPLICATE for item in seen.obstacles)
    made: Object = {
        "phase": phase(seen, counts, failing),
        "conditions": conditions,
        "availableReplicas": counts.available,
        "version": _version(seen, before, now),
        "distributionConfig": _distribution(seen),
    }
    if seen.service is not None:
        made["serviceURL"] = service_url(cr)
    if seen.ingress is not None:
        made["routeURL"] = _route(seen.ingress)
    if rows and not any(item.reason == "InvalidSpec" for item in seen.obstacles):
        # of a refused spec nothing is installed, and its providers may be any number
        made["externalProviderStatus"] = _stamped(
            rows, before.get("externalProviderStatus"), "providerId", "phase", now
        )
    if seen.resolved:
        made["modelDeployments"] = _stamped(
            [item.row for item in seen.resolved], before.get("modelDeployments"), "name", "ready", now
        )
    return made


def phase(seen: Seen, counts: Counts, failing: bool) -> str:
    """Ready while enough pods serve, whatever the newest do; Failed only if none does."""
    if counts.enough:
        return "Ready"
    if failing and counts.available == 0:
        waiting = (
            all(item.reason == "WaitingForModelDeployments" for item in seen.obstacles) and seen.obstacles
        )
        return "Pending" if waiting else "Failed"
    if seen.live is None or counts.desired == 0:
        return "Pending"
    return "Initializing"


def service_url(cr: Distribution) -> str:
    """The server's address inside the cluster."""
    return f"http://{cr.name}-service.{cr.namespace}.svc.cluster.local:{cr.port}"


def _deployment(seen: Seen, counts: Counts, problem: Problem | None, refused: str) -> Condition:
    type_, generation = reasons.DEPLOYMENT_READY, seen.cr.generation
    for item in seen.obstacles:
        if item.type == type_:
            return condition(type_, False, item.reason, item.message, generation=generation)
    if seen.live is not None and counts.desired == 0:
        return condition(type_, False, "ScaledToZero", "No pods are requested", generation=generation)
    if counts.complete and counts.enough:
        return condition(type_, True, "DeploymentReady", "Deployment is ready", generation=generation)
    if problem is not None:
        # a pod that could be created says something newer than why others could not
        return condition(type_, False, problem.reason, problem.message, generation=generation)
    if refused:
        return condition(type_, False, "PodCreationRefused", refused, generation=generation)
    text = f"Deployment is pending: {counts.available} of {counts.desired} pods are available"
    if any(_runs(seen.cr, pod) and not _serves(seen.cr, pod) for pod in seen.pods):
        text += (
            f"; the server's container runs, but nothing answers GET /v1/health on port {seen.cr.port} yet"
        )
    return condition(type_, False, "DeploymentPending", text, generation=generation)


def _providers(seen: Seen, rows: list[Object], problem: Problem | None) -> list[Condition]:
    if not rows:
        return []
    type_, generation = reasons.PROVIDERS_READY, seen.cr.generation
    for item in seen.obstacles:
        if item.type == type_:
            return [condition(type_, False, item.reason, item.message, generation=generation)]
    if problem is not None and problem.part in PARTS:
        return [condition(type_, False, PARTS[problem.part], problem.message, generation=generation)]
    waiting = [row["providerId"] for row in rows if row["phase"] != "Ready"]
    if waiting or not seen.pods or not all(_serves(seen.cr, pod) for pod in seen.pods):
        text = f"Waiting for {', '.join(waiting)}" if waiting else "Waiting for preflight and the server"
        return [condition(type_, False, "ProvidersPending", text, generation=generation)]
    text = f"{len(rows)} of {len(rows)} external providers are installed"
    text = "\n".join([text, *filter(None, [pods.merge_warnings(seen.pods)]), *_mismatches(seen)])
    return [condition(type_, True, "ProvidersReady", text, generation=generation)]


def _mismatches(seen: Seen) -> Iterator[str]:
    """A warning for each provider whose type in the server differs from the one in the image's metadata."""
    stated = pods.provider_types(seen.cr, seen.pods)
    for item in (seen.answer.providers if seen.answer else None) or ():
        written, running = stated.get(item["provider_id"]), item["provider_type"]
        if written and (item["api"], item["provider_id"]) in _placed(seen.cr) and written != running:
            yield (
                f"WARNING: provider '{item['provider_id']}' has the type {running} at run time, but {written} in its "
                f"image's metadata; the server uses {running}: correct lls-provider-spec.yaml"
            )


def _placed(cr: Distribution) -> set[tuple[str, str]]:
    """llama-stack's API and the id of each external provider."""
    return {(apis.run_name(section) or section, item.provider_id) for section, item in cr.spec.providers()}


def _serves(cr: Distribution, pod: Object) -> bool:
    container = status_of(pod, cr.spec.server.container_spec.name)
    return container is not None and bool(container.get("ready"))


def _runs(cr: Distribution, pod: Object) -> bool:
    """Whether the server's container runs; preflight counts as well."""
    container = status_of(pod, cr.spec.server.container_spec.name)
    return container is not None and pod_status.running(container) is not None


def _models(seen: Seen) -> list[Condition]:
    found = model_deployments.summary(seen.resolved, seen.cr.generation)
    return [found] if found else []


def _storage(seen: Seen) -> list[Condition]:
    if seen.cr.spec.server.storage is None:
        return []
    type_, generation = reasons.STORAGE_READY, seen.cr.generation
    for item in seen.obstacles:
        if item.type == type_:
            return [condition(type_, False, item.reason, item.message, generation=generation)]
    found = ((seen.claim or {}).get("status") or {}).get("phase") or "not created"
    if found == "Bound":
        return [condition(type_, True, "StorageReady", "PVC is bound", generation=generation)]
    return [condition(type_, False, "StoragePending", f"PVC is not bound: {found}", generation=generation)]


def _service(seen: Seen) -> list[Condition]:
    type_, generation = reasons.SERVICE_READY, seen.cr.generation
    for item in seen.obstacles:
        if item.type == type_:
            return [condition(type_, False, item.reason, item.message, generation=generation)]
    if not seen.cr.served:
        return []
    if seen.service is None:
        return [condition(type_, False, "ServiceFailed", "Service does not exist yet", generation=generation)]
    return [condition(type_, True, "ServiceReady", "Service is ready", generation=generation)]


def _health(seen: Seen, counts: Counts) -> Condition:
    type_, generation, answer = reasons.HEALTH_CHECK, seen.cr.generation, seen.answer
    if not counts.enough:
        return condition(type_, False, "DeploymentNotReady", "Deployment not ready", generation=generation)
    if not seen.cr.served:
        text = "The CR has no Service, so its server cannot be checked; set containerSpec.port"
        return condition(type_, "Unknown", "NoService", text, generation=generation)
    if answer is None or answer.providers is None:
        text = answer.problem if answer else "The server has not been checked yet"
        return condition(type_, False, "HealthCheckFailed", text, generation=generation)
    return condition(type_, True, "HealthCheckPassed", "Health check passed", generation=generation)


def _version(seen: Seen, before: Mapping[str, Any], now: str) -> Object:
    known = before.get("version") or {}
    reported = seen.answer.version if seen.answer else ""
    made = {"operatorVersion": seen.operator_version}
    if server := reported or known.get("llamaStackServerVersion"):
        made["llamaStackServerVersion"] = server
    same = all(known.get(key) == value for key, value in made.items())
    return {**made, "lastUpdated": known["lastUpdated"] if same and known.get("lastUpdated") else now}


def _distribution(seen: Seen) -> Object:
    made: Object = {
        "activeDistribution": active(seen.cr.spec.server.distribution),
        "availableDistributions": dict(IMAGES),
    }
    if seen.answer and seen.answer.providers:
        made["providers"] = disclosed(seen.cr, seen.answer.providers)
    return made


def _route(ingress: Object) -> str:
    """The Ingress's address; empty while it has none."""
    for item in ((ingress.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
        if address := item.get("hostname") or item.get("ip"):
            return f"http://{address}"
    return ""


def _stamped(rows: list[Object], before: Any, key: str, decides: str, now: str) -> list[Object]:
    """Rows with the time at which the deciding field last changed."""
    known = {item.get(key): item for item in before or ()}
    made = []
    for row in rows:
        earlier = known.get(row[key])
        same = earlier is not None and earlier.get(decides) == row[decides]
        time = earlier.get("lastTransitionTime") if same and earlier else None
        made.append({**row, "lastTransitionTime": time or now})
    return made


def announcements(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[bool, str, str]]:
    """Events for what has changed: type, reason, note. One for each condition's transition, and another if a failing
    one changes its reason."""
    events = []
    known = before.get("conditions")
    for item in after.get("conditions") or ():
        earlier = find(known, item["type"])
        turned = earlier is None or earlier.get("status") != item["status"]
        other = earlier is not None and earlier.get("reason") != item["reason"]
        quiet = earlier is None and item["reason"].endswith(("Pending", "NotReady"))
        if (turned or other) and not quiet:
            events.append((item["status"] == "True", item["reason"], item["message"]))
    return events
