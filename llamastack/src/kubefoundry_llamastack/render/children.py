"""Renders all children of a CR except its Deployment and ConfigMaps (sources §5.1)."""

from __future__ import annotations

from typing import Any

from kubefoundry_llamastack.api.spec import Autoscaling
from kubefoundry_llamastack.names import (
    ANYUID_ROLE,
    AUTOSCALERS,
    CLAIMS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    INGRESSES,
    INSTANCE_LABEL,
    MANAGED_BY,
    MANAGED_BY_LABEL,
    NETWORK_POLICIES,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    SERVICES,
    pod_labels,
)
from kubefoundry_llamastack.render.request import Distribution, child
from kubefoundry_sdk._api.kinds import Kind, Object

SIZE = "10Gi"
"""Size of a volume if the CR states none (sources §5.1)."""

OPTIONAL: tuple[tuple[Kind, str], ...] = (
    (SERVICES, "-service"),
    (INGRESSES, "-ingress"),
    (AUTOSCALERS, "-hpa"),
    (DISRUPTION_BUDGETS, "-pdb"),
    (NETWORK_POLICIES, "-network-policy"),
)
"""Children that are deleted once the CR no longer requests them; the claim stays, because it holds data."""


SUFFIXES: dict[Kind, str] = {
    DEPLOYMENTS: "",
    SERVICE_ACCOUNTS: "-sa",
    ROLE_BINDINGS: "-rb",
    CLAIMS: "-pvc",
    **dict(OPTIONAL),
}
"""The suffixes of children's names after the CR's."""


def service_account(cr: Distribution) -> Object:
    """Render the pods' ServiceAccount.

    It has no other fields, so users' additions (imagePullSecrets) survive.
    """
    return child(SERVICE_ACCOUNTS.kind, SERVICE_ACCOUNTS.api_version, f"{cr.name}-sa", cr)


def role_binding(cr: Distribution) -> Object:
    """Render OpenShift's permission to use any user id.

    Only for clusters whose ClusterRole exists and may be bound.
    """
    return child(
        ROLE_BINDINGS.kind,
        ROLE_BINDINGS.api_version,
        f"{cr.name}-rb",
        cr,
        subjects=[{"kind": "ServiceAccount", "name": f"{cr.name}-sa", "namespace": cr.namespace}],
        roleRef={"apiGroup": ROLE_BINDINGS.group, "kind": "ClusterRole", "name": ANYUID_ROLE},
    )


def service(cr: Distribution) -> Object | None:
    """Render the Service of the server."""
    if not cr.served:
        return None
    return child(
        SERVICES.kind,
        SERVICES.api_version,
        f"{cr.name}-service",
        cr,
        spec={
            "type": "ClusterIP",
            "selector": pod_labels(cr.name),
            "ports": [{"name": "http", "protocol": "TCP", "port": cr.port, "targetPort": cr.port}],
        },
    )


def claim(cr: Distribution) -> Object | None:
    """Render the claim of the volume that outlives the pods."""
    storage = cr.spec.server.storage
    if storage is None:
        return None
    size = SIZE if storage.size is None else str(storage.size)
    return child(
        CLAIMS.kind,
        CLAIMS.api_version,
        f"{cr.name}-pvc",
        cr,
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
    )


def disruption_budget(cr: Distribution) -> Object | None:
    """Render the CR's budget, or one pod at a time if there are several."""
    budget = cr.spec.server.pod_disruption_budget
    amounts: dict[str, Any] = {}
    if budget is not None:
        amounts = budget.model_dump(by_alias=True, exclude_none=True)
    elif cr.spec.replicas > 1:
        amounts = {"maxUnavailable": 1}
    if not amounts:
        return None
    manifest = child(
        DISRUPTION_BUDGETS.kind,
        DISRUPTION_BUDGETS.api_version,
        f"{cr.name}-pdb",
        cr,
        spec={**amounts, "selector": {"matchLabels": pod_labels(cr.name)}},
    )
    manifest["metadata"]["labels"].update(pod_labels(cr.name))
    return manifest


def autoscaler(cr: Distribution, *, by_container: bool = False) -> Object | None:
    """Render the HorizontalPodAutoscaler.

    Args:
        cr: The CR.
        by_container: Whether it measures the server's container alone. The pod's average would hide a busy server
            behind an idle service.
    """
    autoscaling = cr.spec.server.autoscaling
    if autoscaling is None:
        return None
    container = cr.spec.server.container_spec.name if by_container else ""
    spec = scaling(autoscaling, cr.name, container)
    manifest = child(AUTOSCALERS.kind, AUTOSCALERS.api_version, f"{cr.name}-hpa", cr, spec=spec)
    manifest["metadata"]["labels"].update(pod_labels(cr.name))
    return manifest


def scaling(autoscaling: Autoscaling, deployment: str, container: str = "") -> Object:
    """Render the spec of a HorizontalPodAutoscaler.

    Args:
        autoscaling: The scaling as the CR describes it.
        deployment: Name of the Deployment to scale.
        container: The container to measure, empty for whole pods.
    """
    targets = (("cpu", autoscaling.target_cpu), ("memory", autoscaling.target_memory))
    metrics: list[Object] = []
    for name, percent in targets:
        if percent is None:
            continue
        source: Object = {
            "name": name,
            "target": {"type": "Utilization", "averageUtilization": percent},
        }
        if container:
            source["container"] = container
            metrics.append({"type": "ContainerResource", "containerResource": source})
        else:
            metrics.append({"type": "Resource", "resource": source})
    spec: Object = {
        "scaleTargetRef": {
            "apiVersion": DEPLOYMENTS.api_version,
            "kind": DEPLOYMENTS.kind,
            "name": deployment,
        },
        "maxReplicas": autoscaling.max_replicas,
    }
    if autoscaling.min_replicas is not None:
        spec["minReplicas"] = autoscaling.min_replicas
    if metrics:
        spec["metrics"] = metrics
    return spec


def ingress(cr: Distribution) -> Object | None:
    """Render the Ingress, if there is a Service that it can lead to."""
    if not (cr.served and cr.spec.network and cr.spec.network.expose_route):
        return None
    backend = {"service": {"name": f"{cr.name}-service", "port": {"number": cr.port}}}
    manifest = child(
        INGRESSES.kind,
        INGRESSES.api_version,
        f"{cr.name}-ingress",
        cr,
        spec={"rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]},
    )
    manifest["metadata"]["labels"] = {INSTANCE_LABEL: cr.name, MANAGED_BY_LABEL: MANAGED_BY}
    return manifest


def network_policy(cr: Distribution, operator_namespace: str) -> Object:
    """Render the NetworkPolicy, which limits the callers of the server.

    The server's own namespace, the operator's, and those of the CR may call it. With any `spec.network` OpenShift's
    router may call it, too. "*" allows everybody (sources §5.1).
    """
    allowed = cr.spec.network.allowed_from if cr.spec.network else None
    namespaces = (allowed.namespaces if allowed else None) or []
    peers: list[Object] = [{"namespaceSelector": {}}]
    if "*" not in namespaces:
        peers = [{"podSelector": {}}, *(_namespace(name) for name in (operator_namespace, *namespaces))]
        for key in (allowed.labels if allowed else None) or []:
            expression = {"key": key, "operator": "Exists"}
            peers.append({"namespaceSelector": {"matchExpressions": [expression]}})
        if cr.spec.network is not None:
            router = {"network.openshift.io/policy-group": "ingress"}
            peers.append({"namespaceSelector": {"matchLabels": router}})
    return child(
        NETWORK_POLICIES.kind,
        NETWORK_POLICIES.api_version,
        f"{cr.name}-network-policy",
        cr,
        spec={
            "podSelector": {"matchLabels": pod_labels(cr.name)},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": peers, "ports": [{"protocol": "TCP", "port": cr.port}]}],
        },
    )


def _namespace(name: str) -> Object:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
