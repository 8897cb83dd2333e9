"""Renders parts that all services of providers share, wherever their containers run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kubefoundry_llamastack.api.spec import ProviderService
from kubefoundry_llamastack.render.containers import last_of_each, with_requests
from kubefoundry_sdk._api.kinds import Object
from llamastack_providers import service

HEALTH_PATH: Final = "/healthz"

REQUESTS: Final = {"cpu": "100m", "memory": "128Mi"}
"""Requests of a service without any. An autoscaler by CPU fails for a pod with a container that requests none."""

SECURITY: Final[Object] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""The settings of the Pod Security level `restricted`. `runAsNonRoot` comes from the pod."""

RESERVED_ENV: Final = "LLS_PROVIDER_"
"""Begins the names of the variables that the operator sets for a service."""

START_PERIOD: Final = 2
"""Seconds between two checks of a service that starts."""


@dataclass(frozen=True, slots=True)
class ServiceContainer:
    """The container of a provider's service, with its defaults resolved.

    Attributes:
        provider_id: The provider.
        image: Image of the service.
        spec: The service as the CR describes it.
        port: Port for requests, None with a socket.
        health_port: Port for health checks, None if a command checks the health.
    """

    provider_id: str
    image: str
    spec: ProviderService
    port: int | None
    health_port: int | None

    @property
    def container(self) -> str:
        """Return the name of its container."""
        return service.container(self.provider_id)

    @property
    def scratch_volume(self) -> str:
        """Return the name of its volume at /tmp, which exists only with `scratch`."""
        return f"tmp-{self.provider_id}"


def rendered(
    item: ServiceContainer, variables: Mapping[str, str], mounts: list[Object], *, awaited: bool
) -> Object:
    """Render the container.

    Args:
        item: The service.
        variables: The operator's variables, without their common beginning.
        mounts: The mounts of its volumes, except that at /tmp.
        awaited: Whether its health decides when its pod starts and gets requests.
    """
    spec = item.spec
    security = SECURITY
    if spec.scratch is not None:
        mounts = [*mounts, {"name": item.scratch_volume, "mountPath": "/tmp"}]
        security = {**SECURITY, "readOnlyRootFilesystem": True}
    container: Object = {
        "name": item.container,
        "image": item.image,
        "imagePullPolicy": spec.image_pull_policy,
        "env": _environment(item, variables),
        "resources": with_requests(spec.resources, REQUESTS),
        "securityContext": security,
        **({"volumeMounts": mounts} if mounts else {}),
        **_probes(item, awaited=awaited),
    }
    if spec.command:
        container["command"] = list(spec.command)
    if spec.args:
        container["args"] = list(spec.args)
    return container


def scratch_volumes(item: ServiceContainer) -> list[Object]:
    """Render the volume at /tmp, if the CR gives it a size."""
    if item.spec.scratch is None:
        return []
    return [{"name": item.scratch_volume, "emptyDir": {"sizeLimit": str(item.spec.scratch)}}]


def _environment(item: ServiceContainer, variables: Mapping[str, str]) -> list[Object]:
    own = {"ID": item.provider_id, **variables}
    if item.health_port is not None:
        own["HEALTH"] = f"0.0.0.0:{item.health_port}"
    rendered_own = [{"name": f"{RESERVED_ENV}{name}", "value": value} for name, value in own.items()]
    return last_of_each([*rendered_own, *(item.spec.env or ())], "name")


def _probes(item: ServiceContainer, *, awaited: bool) -> Object:
    """Render the probes. Without a startup and a readiness probe, its health decides nothing about its pod."""
    health = item.spec.health
    check: Object = {"exec": {"command": list(health.exec or ())}}
    if item.health_port is not None:
        check = {"httpGet": {"path": health.path or HEALTH_PATH, "port": item.health_port}}
    liveness = {**check, "periodSeconds": 30, "failureThreshold": 5, "timeoutSeconds": 10}
    if not awaited:
        return {"livenessProbe": {**liveness, "initialDelaySeconds": health.start_seconds}}
    return {
        "startupProbe": {
            **check,
            "periodSeconds": START_PERIOD,
            "timeoutSeconds": START_PERIOD,
            # The first check comes at once, so N checks last N - 1 periods.
            "failureThreshold": -(-health.start_seconds // START_PERIOD) + 1,
        },
        "readinessProbe": {**check, "periodSeconds": 10, "failureThreshold": 3, "timeoutSeconds": 5},
        "livenessProbe": liveness,
    }
