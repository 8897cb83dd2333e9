"""Names that all components share (contract §1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

GROUP: Final = "kubefoundry.ai"
VERSION: Final = "v1alpha1"
"""The version that our components read and write.

Not the newest, because a component of this release has to work with the CRDs of the release before (docs/upgrade.md).
"""
NEWEST_VERSION: Final = "v1beta1"
"""The version for new manifests. It has the fields of `VERSION`, and both are served (contract §1)."""
API_VERSION: Final = f"{GROUP}/{VERSION}"
NEWEST_API_VERSION: Final = f"{GROUP}/{NEWEST_VERSION}"
API_VERSIONS: Final = (API_VERSION, NEWEST_API_VERSION)
"""The served versions, oldest first."""
MODEL_DEPLOYMENT: Final = "ModelDeployment"
MODEL_DEPLOYMENTS: Final = "modeldeployments"
PROVIDER_CONFIG: Final = "InferenceProviderConfig"
PROVIDER_CONFIGS: Final = "inferenceproviderconfigs"
DEPRECATIONS: Final = {
    kind: f"{API_VERSION} {kind} is deprecated; use {NEWEST_API_VERSION}, which has the same fields"
    for kind in (MODEL_DEPLOYMENT, PROVIDER_CONFIG)
}
"""The API server's warning about a request at `VERSION`, by kind."""

SYSTEM_NAMESPACE: Final = "kubefoundry-system"
CORE_MANAGER: Final = "kubefoundry-core"
SELECTOR_MANAGER: Final = "provider-selector"
SELECTOR_LEASE: Final = "kubefoundry-selector"

PROVIDER_PACKAGES: Final = "kubefoundry.providers"
"""Group of the entry points by which installed packages announce providers."""

PREFIX: Final = f"{GROUP}/"
MANAGED_BY_LABEL: Final = f"{GROUP}/managed-by"
MANAGED_BY: Final = "kubefoundry"
MODEL_LABEL: Final = f"{GROUP}/modeldeployment"
"""On pods, where the provider can set one: the name of their ModelDeployment (contract §7)."""
MODEL_SOURCE_LABEL: Final = f"{GROUP}/model-source"
"""On Workspaces: `spec.model.source` (contract §7)."""
OPERATORS_LABEL: Final = f"{GROUP}/operators"
"""On a Namespace, `true`: its Deployments and Leases count as those of upstream operators."""
PROTECTED_LABEL: Final = f"{GROUP}/protected"
"""On our CRDs, `true`: core refuses their deletion while ModelDeployments exist (contract §1)."""
PAUSED_ANNOTATION: Final = f"{GROUP}/reconcile-paused"
PAUSED_MESSAGE: Final = "reconciliation paused"
"""`status.message` of a model whose provider has seen the pause, and writes nothing upstream (contract §4.5). Core
writes the same message until a provider reports."""
DRY_RUN_ANNOTATION: Final = f"{GROUP}/dry-run"
DRY_RUN_RESULT_ANNOTATION: Final = f"{GROUP}/dry-run-result"
REFRESH_ANNOTATION: Final = f"{GROUP}/refresh"
RESELECT_ANNOTATION: Final = f"{GROUP}/reselect"
VERIFY_ENDPOINT_ANNOTATION: Final = f"{GROUP}/verify-endpoint"
CREATOR_ANNOTATION: Final = f"{GROUP}/creator"
"""On a ModelDeployment: the user who created it. Trusted only where manifests/provider-policy protects it."""
CREATOR_GROUPS_ANNOTATION: Final = f"{GROUP}/creator-groups"
"""On a ModelDeployment: the groups of that user, one a line."""
PROVIDERS_ANNOTATION: Final = f"{GROUP}/allowed-providers"
"""On a Namespace: the providers that its models may use, separated by commas (docs/policy.md)."""
EDITS_RECREATE_ANNOTATION: Final = f"{GROUP}/edits-recreate"
"""On an InferenceProviderConfig, `true`: the provider changes no upstream object in place (contract §7)."""
CONTRACT_ANNOTATION: Final = f"{GROUP}/contract"
"""On an InferenceProviderConfig: the version of the contract that the provider implements (contract §5)."""
OWNER_UID_ANNOTATION: Final = f"{GROUP}/owner-uid"
APPLIED_ANNOTATION: Final = f"{GROUP}/applied"
APPLIED_GENERATION_ANNOTATION: Final = f"{GROUP}/applied-generation"
PROPAGATED_ANNOTATION: Final = f"{GROUP}/propagated"
"""On an upstream object: the labels and annotations that it follows (`labels/team,annotations/owner`)."""
CLAIM_OF_ANNOTATION: Final = f"{GROUP}/claim-of"
"""On a PersistentVolumeClaim that core created: MODEL/VOLUME, the ModelDeployment and the volume in it."""
CLAIM_OF_UID_ANNOTATION: Final = f"{GROUP}/claim-of-uid"
"""On a PersistentVolumeClaim that core created: the uid of the ModelDeployment that used it last."""
POD_SETTINGS_ANNOTATION: Final = f"{GROUP}/pod-settings"
"""On an upstream object: the administrator's settings for pods with which it was written (JSON)."""


def provider_manager(provider: str) -> str:
    """Return the field manager of a provider (contract §1)."""
    return f"{provider}-provider"


def providers_of(managers: Iterable[str]) -> list[str]:
    """Return the providers whose field managers are among these, sorted."""
    suffix = provider_manager("")
    return sorted(manager.removesuffix(suffix) for manager in managers if manager.endswith(suffix))


def provider_finalizer(provider: str) -> str:
    """Return the finalizer that a provider puts on a ModelDeployment (contract §4.17)."""
    return f"{GROUP}/{provider}-provider"
