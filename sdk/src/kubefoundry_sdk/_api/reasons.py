"""Condition types and their reasons: a closed list (contract §3)."""

from __future__ import annotations

from typing import Final

VALIDATED: Final = "Validated"
PROVIDER_SELECTED: Final = "ProviderSelected"
PROVIDER_COMPATIBLE: Final = "ProviderCompatible"
RESOURCE_CREATED: Final = "ResourceCreated"
READY: Final = "Ready"
PROVIDER_HEALTHY: Final = "ProviderHealthy"
STALE_STATUS: Final = "StaleStatus"
OVERRIDES_VALID: Final = "OverridesValid"

EXPLICIT_SELECTION: Final = "explicit provider selection"
"""`status.provider.selectedReason` if the user named the provider (contract §3)."""

UPSTREAM_READY: Final = "UpstreamReady"
UPSTREAM_OPERATOR_UP: Final = "UpstreamOperatorUp"
RULES_VALID: Final = "RulesValid"
"""UpstreamReady, UpstreamOperatorUp and RulesValid are conditions of an InferenceProviderConfig. The provider reports
the first two, the selector the third."""

SETTINGS_DISCOVERED: Final = "SettingsDiscovered"
"""Also of an InferenceProviderConfig, if the upstream operator's Deployment shows settings of the provider."""

REGISTRATION_APPLIED: Final = "RegistrationApplied"
"""Also of an InferenceProviderConfig, if admission changes what the provider writes there."""

PROVIDER_TOO_OLD: Final = "ProviderTooOld"
"""The reason of `Validated` for a spec that is valid, and has a field that its provider would ignore."""

CLAIM_NOT_READY: Final = "ClaimNotReady"
"""The reason of `Validated` for a spec that is valid, and has a claim that core has not created or cannot use."""

IMAGE_VOLUMES_UNSUPPORTED: Final = "ImageVolumesUnsupported"
"""The reason of `Validated` for a spec that is valid, and has an image as volume, which the API server does not
store."""

REASONS: Final[dict[str, frozenset[str]]] = {
    VALIDATED: frozenset(
        {
            "ValidationPassed",
            "ValidationFailed",
            PROVIDER_TOO_OLD,
            CLAIM_NOT_READY,
            IMAGE_VOLUMES_UNSUPPORTED,
        }
    ),
    PROVIDER_SELECTED: frozenset(
        {
            "AutoSelected",
            "ExplicitlySelected",
            "ProviderNotRegistered",
            "NoSelector",
            "NoHealthyProviders",
            "NoMatchingProvider",
        }
    ),
    PROVIDER_COMPATIBLE: frozenset({"CompatibilityVerified", "Unsupported", "InvalidOverrides"}),
    RESOURCE_CREATED: frozenset(
        {
            "ResourceCreated",
            "DryRun",
            "CRDNotInstalled",
            "UnsupportedSchema",
            "ApplyRejected",
            "ApplyFailed",
            "ProviderError",
            "NameConflict",
            "Recreating",
            "WaitingForCleanup",
            "Terminating",
        }
    ),
    READY: frozenset(
        {"DeploymentReady", "Progressing", "Failed", "ScaledToZero", "Unknown", "EndpointUnverified"}
    ),
    PROVIDER_HEALTHY: frozenset({"HeartbeatSeen", "HeartbeatLost", "UpstreamOperatorDown"}),
    STALE_STATUS: frozenset({"NoUpstreamProgress", "ProviderError"}),
    OVERRIDES_VALID: frozenset({"UnknownKeys"}),
}
"""Reasons of each condition type of a ModelDeployment."""
