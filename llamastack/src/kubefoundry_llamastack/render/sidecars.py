"""Renders services of providers as sidecars: containers next to the server.

Each service shares two small volumes with the server alone: one for its socket, and one with the token of its
requests, which both can only read. Health checks have a listener of their own, because the kubelet reaches neither a
socket nor the loopback address of a pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kubefoundry_llamastack.api.spec import ProviderService
from kubefoundry_llamastack.render.containers import last_of_each, with_requests
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_sdk._api.kinds import Object
from llamastack_providers import layout, service

TRAFFIC_PORT: Final = 18400
HEALTH_PORT: Final = 18500
HEALTH_PATH: Final = "/healthz"

REQUESTS: Final = {"cpu": "100m", "memory": "128Mi"}
"""Requests of a service without any. An autoscaler by CPU fails for a pod with a container that requests none."""

SECURITY: Final[Object] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""The settings of the Pod Security level `restricted`. `runAsNonRoot` comes from the pod in such namespaces."""

RESERVED_ENV: Final = "LLS_PROVIDER_"
"""Begins the names of the variables that the operator sets for a service."""

TOKEN_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"

START_PERIOD: Final = 2
"""Seconds between two checks of a service that starts."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The service of a provider, with its defaults resolved.

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
    def volume(self) -> str:
        """Return the name of the volume with its socket, which it shares with the server."""
        return f"svc-{self.provider_id}"

    @property
    def token_volume(self) -> str:
        """Return the name of the volume with its token, which it shares with the server."""
        return f"tok-{self.provider_id}"

    @property
    def scratch_volume(self) -> str:
        """Return the name of its volume at /tmp, which exists only with `scratch`."""
        return f"tmp-{self.provider_id}"

    @property
    def address(self) -> str:
        """Return the address at which the server's container reaches it."""
        if self.port is not None:
            return f"http://127.0.0.1:{self.port}"
        return f"http+unix://{service.folder(self.provider_id)}/service.sock"


def of(cr: Distribution) -> tuple[Sidecar, ...]:
    """Return the services in the order of installation."""
    served = [(item, item.service) for _, item in cr.spec.providers() if item.service is not None]
    return tuple(
        Sidecar(
            item.provider_id,
            spec.image or item.image,
            spec,
            (spec.port or TRAFFIC_PORT + position) if spec.transport == service.TCP else None,
            None if spec.health.exec else spec.health.port or HEALTH_PORT + position,
        )
        for position, (item, spec) in enumerate(served)
    )


def descriptions(cr: Distribution) -> Mapping[str, Object]:
    """Return the tool's input about each service, by provider id."""
    return {sidecar.provider_id: _description(sidecar) for sidecar in of(cr)}


def _description(sidecar: Sidecar) -> Object:
    spec = sidecar.spec
    fields: Object = {
        "mode": spec.mode,
        "transport": service.UNIX_SOCKET if sidecar.port is None else service.TCP,
        "address": sidecar.address,
        "required": spec.required,
        "startSeconds": spec.health.start_seconds,
        "tokenFile": service.token_file(sidecar.provider_id),
    }
    if sidecar.health_port is not None:
        fields["health"] = {"port": sidecar.health_port, "path": spec.health.path or HEALTH_PATH}
    return fields


def init_containers(cr: Distribution, *, native: bool) -> list[Object]:
    """Render the services that are init containers, which start before the server and end after it.

    An optional service is not among them: while its image is missing, the server would not start.
    """
    return [
        {**_container(item), "restartPolicy": "Always"} for item in of(cr) if native and item.spec.required
    ]


def containers(cr: Distribution, *, native: bool) -> list[Object]:
    """Render the services that start at the same time as the server, which waits for required ones."""
    return [_container(item) for item in of(cr) if not (native and item.spec.required)]


def is_native(template: Object, default: bool) -> bool:
    """Check whether services are init containers in a pod template without any record, `default` if it has none."""
    pod = template["spec"]
    if any(item.get("restartPolicy") for item in pod.get("initContainers") or ()):
        return True
    return default and not any(item["name"].startswith(service.CONTAINER) for item in pod["containers"])


def server_environment(cr: Distribution) -> list[Object]:
    """Render the server's variables with the address of each service."""
    return [{"name": service.url_variable(item.provider_id), "value": item.address} for item in of(cr)]


def server_mounts(cr: Distribution) -> list[Object]:
    """Render the mounts of all services' sockets and tokens in the server's container."""
    sockets: list[Object] = [
        {"name": item.volume, "mountPath": service.folder(item.provider_id), "readOnly": True}
        for item in of(cr)
    ]
    return [*sockets, *({**mount, "readOnly": True} for mount in token_mounts(cr))]


def token_mounts(cr: Distribution) -> list[Object]:
    """Render the mounts of all services' tokens, which `merge-config` writes."""
    return [
        {"name": item.token_volume, "mountPath": service.token_folder(item.provider_id)} for item in of(cr)
    ]


def volumes(cr: Distribution) -> list[Object]:
    """Render the volumes of all services. Sockets and tokens are in memory, and never on a node's disk."""
    result: list[Object] = []
    for item in of(cr):
        in_memory = {"medium": "Memory", "sizeLimit": "1Mi"}
        result += [{"name": name, "emptyDir": in_memory} for name in (item.volume, item.token_volume)]
        if item.spec.scratch is not None:
            scratch = {"sizeLimit": str(item.spec.scratch)}
            result.append({"name": item.scratch_volume, "emptyDir": scratch})
    return result


def _container(sidecar: Sidecar) -> Object:
    spec = sidecar.spec
    token_folder = service.token_folder(sidecar.provider_id)
    mounts = [
        {"name": sidecar.volume, "mountPath": layout.SERVICES},
        {"name": sidecar.token_volume, "mountPath": token_folder, "readOnly": True},
        # The API server mounts the token of podOverrides.serviceAccountName only where nothing else is mounted.
        {"name": sidecar.volume, "mountPath": TOKEN_FOLDER, "subPath": "no-token", "readOnly": True},
    ]
    security = SECURITY
    if spec.scratch is not None:
        mounts.append({"name": sidecar.scratch_volume, "mountPath": "/tmp"})
        security = {**SECURITY, "readOnlyRootFilesystem": True}
    container: Object = {
        "name": sidecar.container,
        "image": sidecar.image,
        "imagePullPolicy": spec.image_pull_policy,
        "env": _environment(sidecar),
        "resources": with_requests(spec.resources, REQUESTS),
        "securityContext": security,
        "volumeMounts": mounts,
        **_probes(sidecar),
    }
    if spec.command:
        container["command"] = list(spec.command)
    if spec.args:
        container["args"] = list(spec.args)
    return container


def _environment(sidecar: Sidecar) -> list[Object]:
    listen = f"unix:{layout.SERVICES}/service.sock"
    if sidecar.port is not None:
        listen = f"127.0.0.1:{sidecar.port}"
    variables = {
        "ID": sidecar.provider_id,
        "LISTEN": listen,
        "TOKEN_FILE": service.token_file(sidecar.provider_id),
    }
    if sidecar.health_port is not None:
        variables["HEALTH"] = f"0.0.0.0:{sidecar.health_port}"
    own = [{"name": f"{RESERVED_ENV}{name}", "value": value} for name, value in variables.items()]
    return last_of_each([*own, *(sidecar.spec.env or ())], "name")


def _probes(sidecar: Sidecar) -> Object:
    """Render the probes.

    An optional service has neither a startup probe nor a readiness probe, so its health never takes the pod out of
    the Service.
    """
    health = sidecar.spec.health
    check: Object = {"exec": {"command": list(health.exec or ())}}
    if sidecar.health_port is not None:
        check = {"httpGet": {"path": health.path or HEALTH_PATH, "port": sidecar.health_port}}
    liveness = {**check, "periodSeconds": 30, "failureThreshold": 5, "timeoutSeconds": 10}
    if not sidecar.spec.required:
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
