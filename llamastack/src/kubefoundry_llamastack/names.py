"""Names that the operator shares with its users, the existing operator and the tool in the pods."""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk._api.kinds import CLAIMS as CLAIMS
from kubefoundry_sdk._api.kinds import DEPLOYMENTS as DEPLOYMENTS
from kubefoundry_sdk._api.kinds import NAMESPACES as NAMESPACES
from kubefoundry_sdk._api.kinds import PODS as PODS
from kubefoundry_sdk._api.kinds import SERVICES as SERVICES
from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._api.names import GROUP

LLSD: Final = Kind("llamastack.io", "v1alpha1", "llamastackdistributions", "LlamaStackDistribution")

OGX_SERVERS: Final = Kind("ogx.io", "v1beta1", "ogxservers", "OGXServer")
"""The resource of the existing operator's successor, which can adopt the children of a LlamaStackDistribution."""

_RBAC: Final = "rbac.authorization.k8s.io"
_NETWORK: Final = "networking.k8s.io"
REPLICA_SETS: Final = Kind("apps", "v1", "replicasets", "ReplicaSet", built_in=True)
SERVICE_ACCOUNTS: Final = Kind("", "v1", "serviceaccounts", "ServiceAccount", built_in=True)
ROLE_BINDINGS: Final = Kind(_RBAC, "v1", "rolebindings", "RoleBinding", built_in=True)
CLUSTER_ROLES: Final = Kind(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False, built_in=True)
NETWORK_POLICIES: Final = Kind(_NETWORK, "v1", "networkpolicies", "NetworkPolicy", built_in=True)
INGRESSES: Final = Kind(_NETWORK, "v1", "ingresses", "Ingress", built_in=True)
AUTOSCALERS: Final = Kind(
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", built_in=True
)
DISRUPTION_BUDGETS: Final = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", built_in=True)

MANAGER: Final = "kubefoundry-llamastack"

OLD_MANAGER: Final = "manager"
"""Field manager with which the existing operator creates and updates; it applies under the CR's own name (sources
§5.1)."""

MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
PART_OF_LABEL: Final = "app.kubernetes.io/part-of"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
WATCH_LABEL: Final = "llamastack.io/watch"
MANAGED_BY: Final = "llama-stack-operator"
"""Same as the existing operator's: users' selectors and an adoption rely on it."""

APP: Final = "llama-stack"
PROVIDER_APP: Final = "llama-stack-provider"
"""`app` of the pods of a provider's service."""

LLSD_LABEL: Final = f"{GROUP}/llsd"
LLSD_PROVIDER_LABEL: Final = f"{GROUP}/llsd-provider"
"""On all objects of a service with pods of its own: the LlamaStackDistribution and the provider."""

OPERATOR_CONFIG: Final = "llama-stack-operator-config"
TRUSTED_CA: Final = "odh-trusted-ca-bundle"
"""Used without any field of the CR if it is in its namespace (sources §5.1)."""

ANYUID_ROLE: Final = "system:openshift:scc:anyuid"

USER_CONFIG_HASH: Final = "configmap.hash/user-config"
CA_BUNDLE_HASH: Final = "configmap.hash/ca-bundle"

PROVIDER_SECONDS_ANNOTATION: Final = f"{GROUP}/provider-seconds"
"""On a CR: seconds that each external provider has to load before the server starts."""

INSTALL: Final = "external-provider-"
EXTRACT: Final = "extract-distribution-config"
MERGE: Final = "merge-config"

ADOPTIONS: Final = (f"{OGX_SERVERS.group}/adopt-storage", f"{OGX_SERVERS.group}/adopt-networking")
"""Annotations of an OGXServer with the name of the LlamaStackDistribution whose children it adopts."""

ADOPTED_FROM: Final = f"{OGX_SERVERS.group}/adopted-from"
"""Label of an adopted child. An early release of the successor wrote an annotation."""


def labels() -> dict[str, str]:
    """Return the labels of children, as the existing operator writes them."""
    return {MANAGED_BY_LABEL: MANAGED_BY, PART_OF_LABEL: APP, WATCH_LABEL: "true"}


def pod_labels(name: str) -> dict[str, str]:
    """Return the labels by which Service, budget and policies select the pods of a CR."""
    return {"app": APP, INSTANCE_LABEL: name}


def endpoint_variable(provider_id: str) -> str:
    """Return the variable with the base URL of a ModelDeployment.

    Ids have no underscore, so no two ids share a variable.
    """
    return f"KUBEFOUNDRY_MD_{provider_id.upper().replace('-', '_')}_URL"
