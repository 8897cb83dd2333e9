"""Checks the services of providers before anything is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from kubefoundry_llamastack.render import sidecars
from kubefoundry_llamastack.render.request import Distribution, Settings
from kubefoundry_llamastack.render.service_container import RESERVED_ENV
from kubefoundry_llamastack.render.sidecars import Sidecar
from kubefoundry_sdk._api import quantity
from llamastack_providers.service import TCP

MOST: Final = 16
"""Services of one pod. Each has two ports by default."""

SIZE_LIMIT: Final = 256 * 1024
"""Characters of all services' containers as JSON, so that the pod template fits into one ConfigMap (1 MiB)."""


def refusal(cr: Distribution, settings: Settings) -> str | None:
    """Return the first problem as what, why and what to do, or None if there is none."""
    services = sidecars.of(cr)
    if services and not settings.provider_services:
        return (
            f"provider '{services[0].provider_id}' has a service, but this operator runs none; remove "
            "externalProviders.*.service, or have an administrator start the operator with --provider-services"
        )
    if len(services) > MOST:
        return f"{len(services)} providers have a service, but a pod may have at most {MOST}; remove some"
    problems = (problem for item in services for problem in _problems(cr, item))
    return next(problems, None) or _find_shared_port(cr, services) or _check_size(cr)


def _problems(cr: Distribution, sidecar: Sidecar) -> Iterator[str]:
    spec, name = sidecar.spec, f"the service of provider '{sidecar.provider_id}'"
    if spec.port is not None and spec.transport != TCP:
        yield f"{name} sets port, which a Unix socket does not have; remove it, or set transport: TCP"
    if spec.health.exec and (spec.health.port or spec.health.path):
        yield f"{name} sets health.exec, which replaces health.port and health.path; remove one of both"
    if sidecar.container == cr.spec.server.container_spec.name:
        yield (
            f"spec.server.containerSpec.name: '{sidecar.container}' is the name of the container with {name}; "
            "use another"
        )
    for variable in spec.env or ():
        if str(variable.get("name")).startswith(RESERVED_ENV):
            yield f"{name} sets the variable {variable['name']}, which is the operator's; use another name"
    if spec.scratch is not None and quantity.parse(spec.scratch) == 0:
        yield f"{name} sets scratch to '{spec.scratch}', which leaves no space; set a larger size or remove it"


def _find_shared_port(cr: Distribution, services: tuple[Sidecar, ...]) -> str | None:
    """Return a problem if two listeners of the pod have the same port, because they share one network."""
    owners = {cr.port: "the server (containerSpec.port)"}
    for item in services:
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


def _check_size(cr: Distribution) -> str | None:
    # A health check has up to three copies.
    containers = [*sidecars.init_containers(cr, native=True), *sidecars.containers(cr, native=True)]
    size = len(json.dumps(containers))
    if size <= SIZE_LIMIT:
        return None
    return (
        f"the containers with services of all providers take up {size // 1024} KiB as JSON, but may have at most "
        f"{SIZE_LIMIT // 1024} KiB; shorten their command, args, env or health.exec"
    )
