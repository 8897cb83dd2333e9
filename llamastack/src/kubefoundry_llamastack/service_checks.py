"""Checks the services of providers before anything is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Final

from kubefoundry_llamastack.render import provider_deployment, sidecars
from kubefoundry_llamastack.render.provider_deployment import ProviderDeployment
from kubefoundry_llamastack.render.request import Distribution, Settings
from kubefoundry_llamastack.render.service_container import RESERVED_ENV, ServiceContainer
from kubefoundry_llamastack.render.sidecars import Sidecar
from kubefoundry_sdk._api import quantity
from llamastack_providers.service import TCP, UNIX_SOCKET

MOST: Final = 16
"""Services of one LlamaStackDistribution. Each has two ports by default."""

SIZE_LIMIT: Final = 256 * 1024
"""Characters of all sidecars as JSON, so that the pod template fits into one ConfigMap (1 MiB).

The objects of a service with pods of its own may have as many.
"""


def refusal(cr: Distribution, settings: Settings) -> str | None:
    """Return the first problem as what, why and what to do, or None if there is none."""
    own_pods = provider_deployment.of(cr)
    services: tuple[ServiceContainer, ...] = (*sidecars.of(cr), *own_pods)
    if services and not settings.provider_services:
        return (
            f"provider '{services[0].provider_id}' has a service, but this operator runs none; remove "
            "externalProviders.*.service, or have an administrator start the operator with --provider-services"
        )
    if len(services) > MOST:
        return f"{len(services)} providers have a service, but there may be at most {MOST}; remove some"
    problems = chain(
        (problem for item in sidecars.of(cr) for problem in _problems_of_sidecar(cr, item)),
        (problem for item in own_pods for problem in _problems_of_own_pods(item)),
        (problem for item in services for problem in _problems(item)),
    )
    return next(problems, None) or _find_shared_port(cr) or _check_sizes(cr)


def _name(item: ServiceContainer) -> str:
    return f"the service of provider '{item.provider_id}'"


def _problems_of_sidecar(cr: Distribution, sidecar: Sidecar) -> Iterator[str]:
    spec, name = sidecar.spec, _name(sidecar)
    if spec.port is not None and spec.transport != TCP:
        yield f"{name} sets port, which a Unix socket does not have; remove it, or set transport: TCP"
    for field, value in (
        ("replicas", spec.replicas),
        ("autoscaling", spec.autoscaling),
        ("serviceAccountName", spec.service_account_name),
        ("egress", spec.egress),
    ):
        if value is not None:
            yield (
                f"{name} sets {field}, but it runs in the server's pods (mode: Sidecar); remove it, or set "
                "mode: Deployment"
            )
    if sidecar.container == cr.spec.server.container_spec.name:
        yield (
            f"spec.server.containerSpec.name: '{sidecar.container}' is the name of the container with {name}; "
            "use another"
        )


def _problems_of_own_pods(item: ProviderDeployment) -> Iterator[str]:
    spec, name = item.spec, _name(item)
    if spec.transport == UNIX_SOCKET:
        yield f"{name} has pods of its own (mode: Deployment), which share no socket; set transport: TCP"
    if item.port == item.health_port:
        yield (
            f"{name} has port {item.port} for both requests and health checks, which have listeners of their own; "
            "set another service.port or service.health.port"
        )
    if spec.autoscaling is not None and spec.replicas is not None:
        yield f"{name} sets replicas and autoscaling, which sets the number of pods itself; remove one of both"


def _problems(item: ServiceContainer) -> Iterator[str]:
    spec, name = item.spec, _name(item)
    if spec.health.exec and (spec.health.port or spec.health.path):
        yield f"{name} sets health.exec, which replaces health.port and health.path; remove one of both"
    for variable in spec.env or ():
        if str(variable.get("name")).startswith(RESERVED_ENV):
            yield f"{name} sets the variable {variable['name']}, which is the operator's; use another name"
    if spec.scratch is not None and quantity.parse(spec.scratch) == 0:
        yield f"{name} sets scratch to '{spec.scratch}', which leaves no space; set a larger size or remove it"


def _find_shared_port(cr: Distribution) -> str | None:
    """Return a problem if two listeners of the pod have the same port, because they share one network."""
    owners = {cr.port: "the server (containerSpec.port)"}
    for item in sidecars.of(cr):
        for port, use in ((item.port, "requests"), (item.health_port, "health checks")):
            owner = f"{use} of the service of provider '{item.provider_id}'"
            if port in owners:
                return (
                    f"port {port} belongs both to {owners[port]} and to {owner}, and containers of a pod share their "
                    "ports; set another service.port or service.health.port"
                )
            if port is not None:
                owners[port] = owner
    return None


def _check_sizes(cr: Distribution) -> str | None:
    # A health check has up to three copies.
    containers = [*sidecars.init_containers(cr, native=True), *sidecars.containers(cr, native=True)]
    sizes = {"the containers with services of all providers": len(json.dumps(containers))}
    for item in provider_deployment.of(cr):
        manifests = [manifest for _, manifest in provider_deployment.objects(cr, item)]
        sizes[f"the objects of {_name(item)}"] = len(json.dumps(manifests))
    for name, size in sizes.items():
        if size > SIZE_LIMIT:
            return (
                f"{name} take up {size // 1024} KiB as JSON, but may have at most {SIZE_LIMIT // 1024} KiB; shorten "
                "command, args, env, health.exec or egress"
            )
    return None
