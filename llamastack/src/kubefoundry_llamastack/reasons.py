"""Lists the conditions of a LlamaStackDistribution and their reasons. The list is closed."""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk._api.conditions import Condition, ConditionStatus
from kubefoundry_sdk._api.conditions import condition as build_condition

DEPLOYMENT_READY: Final = "DeploymentReady"
HEALTH_CHECK: Final = "HealthCheck"
STORAGE_READY: Final = "StorageReady"
STORAGE_EXCLUSIVE: Final = "StorageExclusive"
SERVICE_READY: Final = "ServiceReady"
PROVIDERS_READY: Final = "ExternalProvidersReady"
PROVIDER_DEGRADED: Final = "ProviderDegraded"
MODELS_RESOLVED: Final = "ModelDeploymentsResolved"
SERVER_STABLE: Final = "ServerStable"
SOLE_OPERATOR: Final = "SoleOperator"
PAUSED: Final = "Paused"

REASONS: Final[dict[str, frozenset[str]]] = {
    DEPLOYMENT_READY: frozenset(
        {
            "DeploymentReady",
            "DeploymentPending",
            "PodsUnavailable",
            "InvalidSpec",
            "InternalError",
            "DistributionUnknown",
            "ConfigMapNotFound",
            "ConfigMapInvalid",
            "ApplyRejected",
            "NameConflict",
            "PodCreationRefused",
            "Unschedulable",
            "Evicted",
            "ImagePullFailed",
            "ContainerConfigInvalid",
            "CrashLoop",
            "OutOfMemory",
            "WaitingForModelDeployments",
            "WaitingForProviders",
            "ScaledToZero",
        }
    ),
    HEALTH_CHECK: frozenset(
        {"HealthCheckPassed", "HealthCheckFailed", "HealthCheckPending", "DeploymentNotReady", "NoService"}
    ),
    STORAGE_READY: frozenset({"StorageReady", "StoragePending", "StorageFailed"}),
    STORAGE_EXCLUSIVE: frozenset({"SeveralPods", "ClaimShared"}),
    SERVICE_READY: frozenset({"ServiceReady", "ServiceFailed", "NameConflict"}),
    PROVIDERS_READY: frozenset(
        {
            "ProvidersReady",
            "ProvidersPending",
            "ProviderFailed",
            "ConfigExtractFailed",
            "ConfigMergeFailed",
            "PreflightFailed",
            "ServiceNotReady",
            "DuplicateProviderId",
        }
    ),
    PROVIDER_DEGRADED: frozenset(
        {
            "ServiceCrashLoop",
            "ServiceNotReady",
            "ServiceOutOfMemory",
            "ServiceImagePullFailed",
            "ServiceConfigInvalid",
            "ServiceUnschedulable",
        }
    ),
    MODELS_RESOLVED: frozenset(
        {"Resolved", "NotFound", "NotReady", "NoEndpoint", "HoldingLastEndpoint", "CRDNotInstalled"}
    ),
    SERVER_STABLE: frozenset({"ServerEndsRepeatedly"}),
    SOLE_OPERATOR: frozenset({"OldOperatorRunning", "OldCRDInstalled", "AdoptedBySuccessor"}),
    PAUSED: frozenset({"ReconcilePaused"}),
}
"""StorageExclusive, ServerStable and SoleOperator exist only while False, and Paused and ProviderDegraded only while
True."""

WAITING: Final = frozenset({"WaitingForModelDeployments", "WaitingForProviders"})
"""Reasons of a Deployment that waits for objects of the same spec."""

PROGRESS: Final = frozenset(
    {
        "DeploymentPending",
        "ProvidersPending",
        "StoragePending",
        "ScaledToZero",
        *WAITING,
        "NotReady",
        "NoService",
    }
)
"""Reasons of conditions that are not True, but report no failure: a start, a rollout, a request of the user."""

CONSEQUENCES: Final = frozenset({"HealthCheckPending", "DeploymentNotReady"})
"""Reasons of conditions that follow from DeploymentReady, which has Events of its own."""


def condition(
    type_: str, status: ConditionStatus | bool, reason: str, message: str, *, generation: int
) -> Condition:
    """Build a condition without its transition time.

    Raises:
        ValueError: The reason is not in the closed list.
    """
    if reason not in REASONS[type_]:
        raise ValueError(
            f"{reason} is not a reason of condition {type_}: {', '.join(sorted(REASONS[type_]))}"
        )
    return build_condition(type_, status, reason, message, generation=generation)
