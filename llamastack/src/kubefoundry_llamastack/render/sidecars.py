"""Renders services of providers as sidecars: containers next to the server.

Each service shares two small volumes with the server alone: one for its socket, and one with the token of its
requests, which both can only read. Health checks have a listener of their own, because the kubelet reaches neither a
socket nor the loopback address of a pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_llamastack.render.service_container import (
    HEALTH_PATH,
    ServiceContainer,
    rendered,
    scratch_volumes,
)
from kubefoundry_sdk._api.kinds import Object
from llamastack_providers import layout, service

TRAFFIC_PORT: Final = 18400
HEALTH_PORT: Final = 18500

TOKEN_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True, slots=True)
class Sidecar(ServiceContainer):
    """A service in the server's pods."""

    @property
    def volume(self) -> str:
        """Return the name of the volume with its socket, which it shares with the server."""
        return f"svc-{self.provider_id}"

    @property
    def token_volume(self) -> str:
        """Return the name of the volume with its token, which it shares with the server."""
        return f"tok-{self.provider_id}"

    @property
    def address(self) -> str:
        """Return the address at which the server's container reaches it."""
        if self.port is not None:
            return f"http://127.0.0.1:{self.port}"
        return f"http+unix://{service.folder(self.provider_id)}/service.sock"


def of(cr: Distribution) -> tuple[Sidecar, ...]:
    """Return the sidecars in the order of installation."""
    served = [
        (item, item.service)
        for _, item in cr.spec.providers()
        if item.service is not None and item.service.mode == service.SIDECAR
    ]
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
        result += scratch_volumes(item)
    return result


def _container(sidecar: Sidecar) -> Object:
    token_folder = service.token_folder(sidecar.provider_id)
    mounts: list[Object] = [
        {"name": sidecar.volume, "mountPath": layout.SERVICES},
        {"name": sidecar.token_volume, "mountPath": token_folder, "readOnly": True},
        # The API server mounts the token of podOverrides.serviceAccountName only where nothing else is mounted.
        {"name": sidecar.volume, "mountPath": TOKEN_FOLDER, "subPath": "no-token", "readOnly": True},
    ]
    listen = f"unix:{layout.SERVICES}/service.sock"
    if sidecar.port is not None:
        listen = f"127.0.0.1:{sidecar.port}"
    variables = {"LISTEN": listen, "TOKEN_FILE": service.token_file(sidecar.provider_id)}
    # The health of an optional service never takes the pod out of the Service.
    return rendered(sidecar, variables, mounts, awaited=sidecar.spec.required)
