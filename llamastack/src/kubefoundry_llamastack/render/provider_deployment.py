"""Renders the objects of services that have pods of their own.

The pods get no token of requests, and a token of a ServiceAccount only if the CR names the account. Which pods may
send requests is decided by the NetworkPolicy, which therefore always exists. The Service has the default port of HTTP
whatever port the service listens on, so no field of the service but `mode` and `required` changes the server's pods.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kubefoundry_llamastack import names
from kubefoundry_llamastack.names import DEPLOYMENTS, pod_labels
from kubefoundry_llamastack.render.children import scaling
from kubefoundry_llamastack.render.request import Distribution, child
from kubefoundry_llamastack.render.service_container import ServiceContainer, rendered, scratch_volumes
from kubefoundry_sdk._api.kinds import Kind, Object
from llamastack_providers import service

PORT: Final = 8080
HEALTH_PORT: Final = 8081
PORT_NAME: Final = "http"

LABEL: Final = 63
"""Characters of a DNS label, which is a Service's name."""

DNS_PORTS: Final = (53, 5353)
"""Ports of a cluster's DNS. Policies apply to the port of its pods, which is 5353 on OpenShift."""

INPUTS: Final = ("mode", "required")
"""Fields of a service with pods of its own that the server's pod template depends on."""


@dataclass(frozen=True, slots=True)
class ProviderDeployment(ServiceContainer):
    """A service with pods of its own.

    Attributes:
        name: Name of all its objects.
        address: The address at which the server's container reaches it.
    """

    name: str
    address: str

    @property
    def replicas(self) -> int | None:
        """Return the number of pods, None if an autoscaler decides."""
        if self.spec.autoscaling is not None:
            return None
        return 1 if self.spec.replicas is None else self.spec.replicas


def of(cr: Distribution) -> tuple[ProviderDeployment, ...]:
    """Return the services with pods of their own in the order of installation."""
    return tuple(
        ProviderDeployment(
            item.provider_id,
            item.service.image or item.image,
            item.service,
            item.service.port or PORT,
            None if item.service.health.exec else item.service.health.port or HEALTH_PORT,
            name_of(cr.name, item.provider_id),
            address_of(cr, item.provider_id),
        )
        for _, item in cr.spec.providers()
        if item.service is not None and item.service.mode == service.DEPLOYMENT
    )


def address_of(cr: Distribution, provider_id: str) -> str:
    """Return the address of a service, also of one that the CR no longer requests."""
    return f"http://{name_of(cr.name, provider_id)}.{cr.namespace}.svc"


def name_of(cr: str, provider_id: str) -> str:
    """Return the name of all objects of a service.

    CR `a-b` with provider `c` and CR `a` with provider `b-c` share it. The second of them reports NameConflict.
    """
    name = f"{cr}-{provider_id}-provider"
    if len(name) <= LABEL:
        return name
    digest = hashlib.sha256(f"{cr}/{provider_id}".encode()).hexdigest()[:8]
    return f"{name[: LABEL - len(digest) - 1].rstrip('-')}-{digest}"


def descriptions(cr: Distribution) -> Mapping[str, Object]:
    """Return the tool's input about each service, by provider id.

    Its Service accepts connections only while a pod is ready, so preflight needs no listener for health checks.
    """
    return {
        item.provider_id: {
            "mode": item.spec.mode,
            "transport": service.TCP,
            "address": item.address,
            "required": item.spec.required,
        }
        for item in of(cr)
    }


def server_environment(cr: Distribution) -> list[Object]:
    """Render the server's variables with the address of each service."""
    return [{"name": service.url_variable(item.provider_id), "value": item.address} for item in of(cr)]


def own_labels(cr: Distribution, item: ProviderDeployment) -> dict[str, str]:
    """Return the labels of the service's pods, which no selector of the server's pods matches."""
    return {
        "app": names.PROVIDER_APP,
        names.LLSD_LABEL: cr.name,
        names.LLSD_PROVIDER_LABEL: item.provider_id,
    }


def objects(cr: Distribution, item: ProviderDeployment) -> list[tuple[Kind, Object]]:
    """Render all objects of a service. The Deployment, which needs its account and its policy, comes after them."""
    rendered_objects = [
        (
            names.SERVICE_ACCOUNTS,
            _object(names.SERVICE_ACCOUNTS, cr, item, automountServiceAccountToken=False),
        ),
        (names.NETWORK_POLICIES, _network_policy(cr, item)),
        (names.SERVICES, _service(cr, item)),
        (DEPLOYMENTS, _deployment(cr, item)),
    ]
    if item.spec.autoscaling is not None:
        spec = scaling(item.spec.autoscaling, item.name)
        rendered_objects.append((names.AUTOSCALERS, _object(names.AUTOSCALERS, cr, item, spec=spec)))
    if item.replicas is None or item.replicas > 1:
        budget = {"maxUnavailable": 1, "selector": {"matchLabels": own_labels(cr, item)}}
        rendered_objects.append(
            (names.DISRUPTION_BUDGETS, _object(names.DISRUPTION_BUDGETS, cr, item, spec=budget))
        )
    return rendered_objects


def _object(kind: Kind, cr: Distribution, item: ProviderDeployment, **body: object) -> Object:
    manifest = child(kind.kind, kind.api_version, item.name, cr, **body)
    manifest["metadata"]["labels"].update(own_labels(cr, item))
    return manifest


def _service(cr: Distribution, item: ProviderDeployment) -> Object:
    port = {"name": PORT_NAME, "protocol": "TCP", "port": 80, "targetPort": PORT_NAME}
    spec = {"type": "ClusterIP", "selector": own_labels(cr, item), "ports": [port]}
    return _object(names.SERVICES, cr, item, spec=spec)


def _network_policy(cr: Distribution, item: ProviderDeployment) -> Object:
    """Render the policy: requests from the server's pods alone, and DNS and the CR's rules to other places."""
    dns = [{"protocol": protocol, "port": port} for port in DNS_PORTS for protocol in ("UDP", "TCP")]
    spec = {
        "podSelector": {"matchLabels": own_labels(cr, item)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {
                "from": [{"podSelector": {"matchLabels": pod_labels(cr.name)}}],
                "ports": [{"protocol": "TCP", "port": PORT_NAME}],
            }
        ],
        "egress": [{"ports": dns}, *(item.spec.egress or ())],
    }
    return _object(names.NETWORK_POLICIES, cr, item, spec=spec)


def _deployment(cr: Distribution, item: ProviderDeployment) -> Object:
    """Render the Deployment. It depends on the CR alone, so neither an upgrade nor the cluster replaces its pods."""
    container = rendered(item, {"LISTEN": f"0.0.0.0:{item.port}"}, [], awaited=True)
    container["ports"] = [{"name": PORT_NAME, "containerPort": item.port, "protocol": "TCP"}]
    pod: Object = {
        "serviceAccountName": item.spec.service_account_name or item.name,
        "enableServiceLinks": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    if item.spec.service_account_name is None:
        # Its own account has no permissions. An account that the CR names is there for its permissions.
        pod["automountServiceAccountToken"] = False
    if volumes := scratch_volumes(item):
        pod["volumes"] = volumes
    spec: Object = {
        "selector": {"matchLabels": own_labels(cr, item)},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        "template": {"metadata": {"labels": own_labels(cr, item)}, "spec": pod},
    }
    if item.replicas is not None:
        spec["replicas"] = item.replicas
    return _object(DEPLOYMENTS, cr, item, spec=spec)
