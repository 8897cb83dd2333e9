"""Build the status of a CR, as a pure function of a snapshot (sources §5.1, §5.2; FR-028)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kubefoundry_llamastack import degradation, model_deployments, reasons, storage
from kubefoundry_llamastack.disclosure import disclosed
from kubefoundry_llamastack.distribution import IMAGES, status_name
from kubefoundry_llamastack.observe import deployments, own_pods, pods, sidecars
from kubefoundry_llamastack.observe.containers import status_of
from kubefoundry_llamastack.observe.deployments import Counts
from kubefoundry_llamastack.observe.pods import Problem
from kubefoundry_llamastack.observe.services import leads_to_pods
from kubefoundry_llamastack.observe.sidecars import ServiceState
from kubefoundry_llamastack.reasons import condition
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_llamastack.snapshot import Answer, Snapshot
from kubefoundry_sdk._api import pod_status
from kubefoundry_sdk._api.conditions import Condition, find, is_true
from kubefoundry_sdk._api.kinds import Object
from llamastack_providers import apis

DUPLICATE = "DuplicateProviderId"
PARTS = {
    "install": "ProviderFailed",
    "extract": "ConfigExtractFailed",
    "merge": "ConfigMergeFailed",
    "service": "ServiceNotReady",
    "preflight": "PreflightFailed",
}
"""Reason of ExternalProvidersReady, by the step of the pod's start that failed."""


def status(snapshot: Snapshot, before: Mapping[str, Any], now: str) -> Object:
    """Build the new status.

    Args:
        snapshot: The current objects.
        before: The live status.
        now: The time as RFC 3339.

    Returns:
        The status. Its conditions have no transition times.
    """
    cr = snapshot.cr
    counts = deployments.counts(snapshot.live)
    snapshot = replace(snapshot, answer=_answer(snapshot, before, counts))
    services = [*sidecars.states(cr, snapshot.pods), *own_pods.states(cr, snapshot.own_pods)]
    rows = _rows(snapshot, services, before, now)
    is_refused = any(item.reason == "InvalidSpec" for item in snapshot.obstacles)
    shown = _installed(rows, before) if is_refused else rows
    problem = degradation.with_service_failure(pods.problem(cr, snapshot.pods), services)
    refused = deployments.creation_refused(snapshot.newest, len(snapshot.pods))
    conditions = [
        _deployment(snapshot, before, counts, problem, refused, degradation.pods_without_requests(services)),
        *_providers(snapshot, rows, services, problem),
        *degradation.conditions(services, shown, before, cr.generation, now),
        *_models(snapshot),
        *storage.conditions(snapshot),
        *_stability(snapshot, now),
        *_service(snapshot),
        _health(snapshot, counts),
        *_other_operator(snapshot),
    ]
    is_failing = bool(refused or problem) or any(
        item.type == reasons.DEPLOYMENT_READY or item.reason == DUPLICATE for item in snapshot.obstacles
    )
    result: Object = {
        "phase": phase(snapshot, counts, is_failing),
        "conditions": conditions,
        "availableReplicas": counts.available,
        "version": _version(snapshot, before, now),
        "distributionConfig": _distribution(snapshot),
    }
    if snapshot.service is not None:
        result["serviceURL"] = service_url(cr)
    if snapshot.ingress is not None:
        result["routeURL"] = _route(snapshot.ingress)
    if shown:
        result["externalProviderStatus"] = shown
        result["providersReady"] = (
            f"{sum(row['ready'] and row['phase'] == 'Ready' for row in shown)}/{len(shown)}"
        )
    if rows := [item.row for item in snapshot.resolved]:
        earlier = before.get("modelDeployments")
        result["modelDeployments"] = _stamped(rows, earlier, "name", ("ready",), now)
    return result


def phase(snapshot: Snapshot, counts: Counts, is_failing: bool) -> str:
    """Return Ready while enough pods serve, whatever the newest do, and Failed only if none does."""
    if counts.enough:
        return "Ready"
    if is_failing and counts.available == 0:
        causes = [item.reason for item in snapshot.obstacles]
        is_waiting = bool(causes) and reasons.WAITING.issuperset(causes)
        return "Pending" if is_waiting else "Failed"
    if snapshot.live is None or counts.desired == 0:
        return "Pending"
    return "Initializing"


def service_url(cr: Distribution) -> str:
    """Return the server's address inside the cluster."""
    return f"http://{cr.name}-service.{cr.namespace}.svc.cluster.local:{cr.port}"


def _answer(snapshot: Snapshot, before: Mapping[str, Any], counts: Counts) -> Answer | None:
    """Return the server's last answer. A process that has just started finds it in the status."""
    service, earlier = snapshot.service, find(before.get("conditions"), reasons.HEALTH_CHECK)
    # Only a server that is polled now replaces what an earlier process has seen.
    is_polled = counts.enough and service is not None and leads_to_pods(service)
    if snapshot.answer is not None or not is_polled or earlier is None:
        return snapshot.answer
    if earlier.get("observedGeneration") != snapshot.cr.generation:
        return None
    if earlier.get("reason") == "HealthCheckFailed":
        return Answer(problem=str(earlier.get("message")))
    if earlier.get("reason") == "HealthCheckPassed":
        return Answer((before.get("distributionConfig") or {}).get("providers") or [])
    return None


def _deployment(
    snapshot: Snapshot,
    before: Mapping[str, Any],
    counts: Counts,
    problem: Problem | None,
    refused: str,
    service_failure: str,
) -> Condition:
    type_, generation = reasons.DEPLOYMENT_READY, snapshot.cr.generation
    if obstacle := snapshot.obstacle(type_):
        return obstacle
    # An autoscaler or the user may scale to zero, which is no failure.
    if snapshot.live is not None and counts.desired == 0:
        return condition(type_, False, "ScaledToZero", "No pods are requested", generation=generation)
    if counts.complete and counts.enough:
        return condition(type_, True, "DeploymentReady", "Deployment is ready", generation=generation)
    if problem is not None:
        # A pod that exists is newer information than the refusal of others.
        return condition(type_, False, problem.reason, problem.message, generation=generation)
    if refused:
        return condition(type_, False, "PodCreationRefused", refused, generation=generation)
    if _has_lost_pods(before, counts):
        reason, text = "PodsUnavailable", f"{_progress(snapshot, counts)}; see the pods' Events and logs"
    else:
        reason, text = "DeploymentPending", f"Deployment is pending: {_progress(snapshot, counts)}"
    text += _unanswered(snapshot) + service_failure
    return condition(type_, False, reason, text, generation=generation)


def _unanswered(snapshot: Snapshot) -> str:
    """Describe a server that runs and does not answer. Empty without any."""
    if any(_runs(snapshot.cr, pod) and not _serves(snapshot.cr, pod) for pod in snapshot.pods):
        return f"; the server's container runs, but nothing answers GET /v1/health on port {snapshot.cr.port} yet"
    return ""


def _progress(snapshot: Snapshot, counts: Counts) -> str:
    if counts.rollout == "complete":
        return f"{counts.available} of {counts.desired} pods are available"
    new = min(counts.updated, sum(_is_ready(pod) for pod in snapshot.pods))
    return f"{new} of {counts.desired} new pods are available"


def _has_lost_pods(before: Mapping[str, Any], counts: Counts) -> bool:
    """Check whether pods stopped serving without a rollout, or a rollout does not end."""
    if counts.rollout != "complete":
        return counts.rollout == "stalled"
    earlier = find(before.get("conditions"), reasons.DEPLOYMENT_READY) or {}
    return earlier.get("reason") == "PodsUnavailable" or counts.available < (
        before.get("availableReplicas") or 0
    )


def _rows(
    snapshot: Snapshot, services: list[ServiceState], before: Mapping[str, Any], now: str
) -> list[Object]:
    """Return a row for each external provider, with its transition time."""
    types = pods.provider_types(snapshot.cr, snapshot.pods)
    rows = pods.rows(snapshot.cr, snapshot.pods)
    for row in rows:
        if row["providerId"] in types:
            row["type"] = types[row["providerId"]]
    rows = degradation.with_services(rows, services, server_ready=_all_serve(snapshot))
    earlier = before.get("externalProviderStatus")
    return _stamped(rows, earlier, "providerId", ("phase", "ready", "restarts"), now)


def _installed(rows: list[Object], before: Mapping[str, Any]) -> list[Object]:
    """Return the rows of providers that the live status lists.

    A refused spec installs nothing, and may have any number of providers. Pods with earlier ones may still run.
    """
    by_id = {row["providerId"]: row for row in rows}
    listed = (item.get("providerId") for item in before.get("externalProviderStatus") or ())
    return [by_id[provider_id] for provider_id in listed if provider_id in by_id]


def _providers(
    snapshot: Snapshot, rows: list[Object], services: list[ServiceState], problem: Problem | None
) -> list[Condition]:
    if not rows:
        return []
    type_, generation = reasons.PROVIDERS_READY, snapshot.cr.generation
    if obstacle := snapshot.obstacle(type_):
        return [obstacle]
    if problem is not None and problem.part in PARTS:
        return [condition(type_, False, PARTS[problem.part], problem.message, generation=generation)]
    if text := _awaited(snapshot, rows, services):
        return [condition(type_, False, "ProvidersPending", f"Waiting for {text}", generation=generation)]
    text = f"{len(rows)} of {len(rows)} external providers are installed"
    warnings = [*_mismatches(snapshot), *degradation.warnings(services)]
    text = "\n".join([text, *filter(None, [pods.merge_warnings(snapshot.pods)]), *warnings])
    return [condition(type_, True, "ProvidersReady", text, generation=generation)]


def _awaited(snapshot: Snapshot, rows: list[Object], services: list[ServiceState]) -> str:
    """Return the providers, services or containers that are not ready; empty if all are."""
    if waiting := [row["providerId"] for row in rows if row["phase"] != "Ready"]:
        return ", ".join(waiting)
    if unready := degradation.unready(services):
        return f"the services of {', '.join(unready)}"
    return "" if _all_serve(snapshot) else "preflight and the server"


def _mismatches(snapshot: Snapshot) -> Iterator[str]:
    """Yield a warning for each provider whose type in the server differs from its image's metadata."""
    types_in_image = pods.provider_types(snapshot.cr, snapshot.pods)
    for item in (snapshot.answer.providers if snapshot.answer else None) or ():
        image_type, runtime_type = types_in_image.get(item["provider_id"]), item["provider_type"]
        if (
            image_type
            and (item["api"], item["provider_id"]) in _placed(snapshot.cr)
            and image_type != runtime_type
        ):
            yield (
                f"WARNING: provider '{item['provider_id']}' has the type {runtime_type} at run time, but "
                f"{image_type} in its image's metadata; the server uses {runtime_type}: "
                "correct lls-provider-spec.yaml"
            )


def _placed(cr: Distribution) -> set[tuple[str, str]]:
    """Return llama-stack's API and the id of each external provider."""
    return {(apis.run_name(section) or section, item.provider_id) for section, item in cr.spec.providers()}


def _all_serve(snapshot: Snapshot) -> bool:
    """Check whether there are pods, and the server is ready in each."""
    return bool(snapshot.pods) and all(_serves(snapshot.cr, pod) for pod in snapshot.pods)


def _serves(cr: Distribution, pod: Object) -> bool:
    container = status_of(pod, cr.spec.server.container_spec.name)
    return container is not None and bool(container.get("ready"))


def _is_ready(pod: Object) -> bool:
    """Check whether the pod gets requests, which needs all its containers."""
    return is_true((pod.get("status") or {}).get("conditions"), "Ready")


def _runs(cr: Distribution, pod: Object) -> bool:
    """Check whether the server's container runs. Preflight counts as well."""
    container = status_of(pod, cr.spec.server.container_spec.name)
    return container is not None and pod_status.running(container) is not None


def _models(snapshot: Snapshot) -> list[Condition]:
    summary = model_deployments.summary(snapshot.resolved, snapshot.cr.generation)
    return [summary] if summary else []


def _other_operator(snapshot: Snapshot) -> list[Condition]:
    obstacle = snapshot.obstacle(reasons.SOLE_OPERATOR)
    return [obstacle] if obstacle else []


def _stability(snapshot: Snapshot, now: str) -> list[Condition]:
    if text := pods.describe_repeated_ends(snapshot.cr, snapshot.pods, now):
        generation = snapshot.cr.generation
        return [condition(reasons.SERVER_STABLE, False, "ServerEndsRepeatedly", text, generation=generation)]
    return []


def _service(snapshot: Snapshot) -> list[Condition]:
    type_, generation = reasons.SERVICE_READY, snapshot.cr.generation
    if obstacle := snapshot.obstacle(type_):
        return [obstacle]
    if not snapshot.cr.served:
        return []
    if snapshot.service is None:
        return [condition(type_, False, "ServiceFailed", "Service does not exist yet", generation=generation)]
    return [condition(type_, True, "ServiceReady", "Service is ready", generation=generation)]


def _health(snapshot: Snapshot, counts: Counts) -> Condition:
    type_, generation, answer = reasons.HEALTH_CHECK, snapshot.cr.generation, snapshot.answer
    if not counts.enough:
        return condition(type_, False, "DeploymentNotReady", "Deployment not ready", generation=generation)
    if not snapshot.cr.served:
        text = "The CR has no Service, so its server cannot be checked; set containerSpec.port"
        return condition(type_, "Unknown", "NoService", text, generation=generation)
    if answer is None or answer.providers is None:
        if answer is None or not answer.problem:
            text = "The server has not been checked yet"
            return condition(type_, "Unknown", "HealthCheckPending", text, generation=generation)
        return condition(type_, False, "HealthCheckFailed", answer.problem, generation=generation)
    return condition(type_, True, "HealthCheckPassed", "Health check passed", generation=generation)


def _version(snapshot: Snapshot, before: Mapping[str, Any], now: str) -> Object:
    previous = before.get("version") or {}
    reported = snapshot.answer.version if snapshot.answer else ""
    versions = {"operatorVersion": snapshot.operator_version}
    if server := reported or previous.get("llamaStackServerVersion"):
        versions["llamaStackServerVersion"] = server
    is_unchanged = all(previous.get(key) == value for key, value in versions.items())
    return {
        **versions,
        "lastUpdated": previous["lastUpdated"] if is_unchanged and previous.get("lastUpdated") else now,
    }


def _distribution(snapshot: Snapshot) -> Object:
    config: Object = {
        "activeDistribution": status_name(snapshot.cr.spec.server.distribution),
        "availableDistributions": dict(IMAGES),
    }
    if snapshot.answer and snapshot.answer.providers:
        config["providers"] = disclosed(snapshot.cr, snapshot.answer.providers)
    return config


def _route(ingress: Object) -> str:
    """Return the Ingress's address, empty while it has none."""
    for item in ((ingress.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
        if address := item.get("hostname") or item.get("ip"):
            return f"http://{address}"
    return ""


def _stamped(rows: list[Object], before: Any, key: str, deciding: tuple[str, ...], now: str) -> list[Object]:
    """Add to each row the time at which a deciding field last changed.

    A field that the earlier row lacks has not changed: an earlier release wrote it, or its CRD dropped the field.
    """
    previous = {item.get(key): item for item in before or ()}
    stamped = []
    for row in rows:
        earlier = previous.get(row[key]) or {}
        is_same_state = all(earlier.get(name, row.get(name)) == row.get(name) for name in deciding)
        time = earlier.get("lastTransitionTime") if is_same_state else None
        stamped.append({**row, "lastTransitionTime": time or now})
    return stamped


def announcements(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[bool, str, str]]:
    """Return the Events for changed conditions.

    Each transition of a condition has an Event. A failing condition that changes its reason has another one.
    A condition that only follows from another one has none.

    Returns:
        For each Event: whether it is good news or progress, its reason, its note.
    """
    events = []
    previous = before.get("conditions")
    for item in after.get("conditions") or ():
        earlier = find(previous, item["type"])
        if _is_announced(item, earlier):
            is_true = item["status"] == "True" and item["type"] != reasons.PROVIDER_DEGRADED
            events.append((is_true or item["reason"] in reasons.PROGRESS, item["reason"], item["message"]))
    if find(previous, reasons.PROVIDER_DEGRADED) and not find(
        after.get("conditions"), reasons.PROVIDER_DEGRADED
    ):
        events.append((True, "ProviderRecovered", "No service of a provider fails any more"))
    return events


def _is_announced(item: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> bool:
    if item["reason"] in reasons.CONSEQUENCES:
        return False
    if earlier is None:
        return not item["reason"].endswith(("Pending", "NotReady"))
    return (earlier.get("status"), earlier.get("reason")) != (item["status"], item["reason"])
