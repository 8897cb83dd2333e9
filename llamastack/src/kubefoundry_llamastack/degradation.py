"""Reports services of providers: rows of the status, warnings, and the condition ProviderDegraded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from kubefoundry_llamastack import reasons
from kubefoundry_llamastack.observe.pods import Problem
from kubefoundry_llamastack.observe.sidecars import Failure, ServiceState
from kubefoundry_llamastack.reasons import condition
from kubefoundry_llamastack.render.provider_deployment import ProviderDeployment
from kubefoundry_llamastack.render.sidecars import Sidecar
from kubefoundry_sdk._api.conditions import Condition, find
from kubefoundry_sdk._api.kinds import Object

STEADY_SECONDS: Final = 60.0
"""Seconds that every service is ready before ProviderDegraded goes, so that a crash loop is one outage."""

DEPLOYMENT_REASONS: Final = {
    "ServiceCrashLoop": "CrashLoop",
    "ServiceOutOfMemory": "OutOfMemory",
    "ServiceImagePullFailed": "ImagePullFailed",
    "ServiceConfigInvalid": "ContainerConfigInvalid",
    "ServiceNotReady": "PodsUnavailable",
    "ServiceUnschedulable": "Unschedulable",
}
"""Reason of DeploymentReady by the reason of ProviderDegraded."""

ENDS: Final = frozenset({"ServiceCrashLoop", "ServiceOutOfMemory"})
"""Reasons of a service whose last run has ended."""

CONSEQUENCES: Final = ("preflight", "pod")
"""Steps of a pod's start that fail if a required service does."""


def with_services(rows: list[Object], states: list[ServiceState], *, server_ready: bool) -> list[Object]:
    """Return the rows with mode and readiness of each provider.

    Args:
        rows: The rows about the installation.
        states: The services.
        server_ready: Whether the server is ready in every pod. A provider without a service runs inside it.
    """
    by_id = {state.service.provider_id: state for state in states}
    result = []
    for row in rows:
        is_installed = row["phase"] == "Ready"
        state = by_id.get(row["providerId"])
        if state is None:
            result.append({**row, "mode": "Inline", "ready": is_installed and server_ready})
            continue
        own_pods = state.service if isinstance(state.service, ProviderDeployment) else None
        fields: Object = {
            "mode": state.service.spec.mode,
            "container": own_pods.name if own_pods else state.service.container,
            # Pods of its own are ready, or fail, before the server has any.
            "ready": state.ready and bool(is_installed or own_pods),
            "restarts": state.restarts,
        }
        if own_pods:
            fields["endpoint"] = own_pods.address
        if state.failure and (is_installed or own_pods):
            fields["message"] = state.failure.cause
        result.append({**row, **fields})
    return result


def with_service_failure(problem: Problem | None, states: list[ServiceState]) -> Problem | None:
    """Return the failure of a required service instead of its consequences in the pods of the server."""
    required = (state for state in states if state.service.spec.required and not state.ready)
    failure = next((state.failure for state in required if state.failure), None)
    if failure is None or (problem is not None and problem.part not in CONSEQUENCES):
        return problem
    return Problem("service", DEPLOYMENT_REASONS[failure.reason], failure.message)


def unready(states: list[ServiceState]) -> list[str]:
    """Return the providers whose required service is not ready."""
    return [state.service.provider_id for state in states if state.service.spec.required and not state.ready]


def warnings(states: list[ServiceState]) -> Iterator[str]:
    """Yield a warning for each optional service that is not ready."""
    for state in states:
        if not state.ready and not state.service.spec.required:
            cause = f"The service of provider '{state.service.provider_id}' is not ready"
            consequence = ", but its pod gets no requests until its container runs"
            if isinstance(state.service, ProviderDeployment):
                consequence = ", so the server serves without it"
            yield f"WARNING: {state.failure.cause if state.failure else cause}; it is not required{consequence}"


def pods_without_requests(states: list[ServiceState]) -> str:
    """Describe the failure of an optional sidecar, which keeps requests away from its pod. Empty without any."""
    for state in states:
        if state.failure and not state.service.spec.required and isinstance(state.service, Sidecar):
            return f". {state.failure.cause}, and its pod gets no requests until its container runs"
    return ""


def conditions(
    states: list[ServiceState], rows: list[Object], before: Mapping[str, Any], generation: int, now: str
) -> list[Condition]:
    """Return ProviderDegraded while a service fails, and until all services have been ready for a while.

    Args:
        states: The services.
        rows: The rows of the status, with their transition times.
        before: The live status.
        generation: Generation of the CR.
        now: The time as RFC 3339.
    """
    type_, earlier = reasons.PROVIDER_DEGRADED, find(before.get("conditions"), reasons.PROVIDER_DEGRADED)
    services = [row for row in rows if "container" in row]
    failures = {state.service.provider_id: state.failure for state in states if state.failure}
    if failure := _failure(failures, services, earlier, now):
        return [condition(type_, True, failure.reason, failure.message, generation=generation)]
    if earlier is None or all(row["ready"] and _has_lasted(row, now) for row in services):
        return []
    return [condition(type_, True, earlier["reason"], earlier["message"], generation=generation)]


def _failure(
    failures: Mapping[str, Failure], services: list[Object], earlier: Mapping[str, Any] | None, now: str
) -> Failure | None:
    """Return the failure to report: of the reported service if it still fails. None within one outage."""
    first = next(iter(failures.values()), None)
    if earlier is None:
        return first
    owner = _provider_of(earlier["message"])
    has_changed = any(row["providerId"] == owner and not _has_lasted(row, now) for row in services)
    if has_changed and _is_same_outage(earlier["reason"], failures.get(owner)):
        return None
    return failures.get(owner, first)


def _provider_of(message: str) -> str:
    """Return the provider of a failure's message."""
    facts = dict(line.partition(": ")[::2] for line in message.splitlines())
    return str(facts.get("Provider", ""))


def _is_same_outage(reason: str, failure: Failure | None) -> bool:
    """Check whether a service that has just changed is between two failures of one outage.

    Otherwise the condition would follow each run of a crash loop, and change between two services that fail in turns.
    A failure with the same reason is reported, because its facts are newer.
    """
    if failure is None:
        return True
    is_step = failure.reason in ENDS or failure.reason == "ServiceNotReady"
    return reason in ENDS and is_step and failure.reason != reason


def seconds_to_change(status: Mapping[str, Any], now: str) -> float | None:
    """Return the seconds until time alone may change ProviderDegraded. None if only an event can change it.

    Args:
        status: The status, with the rows of its providers.
        now: The time as RFC 3339.
    """
    if find(status["conditions"], reasons.PROVIDER_DEGRADED) is None:
        return None
    services = (row for row in status.get("externalProviderStatus") or () if "container" in row)
    return min(
        (STEADY_SECONDS - _age(row, now) for row in services if not _has_lasted(row, now)), default=None
    )


def _has_lasted(row: Object, now: str) -> bool:
    return _age(row, now) >= STEADY_SECONDS


def _age(row: Object, now: str) -> float:
    """Return the seconds since the row's last transition. Both times are whole seconds."""
    return (datetime.fromisoformat(now) - datetime.fromisoformat(row["lastTransitionTime"])).total_seconds()
