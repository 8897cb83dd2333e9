"""The pods of a model, found by the label that its provider declares for the pods of its upstream object."""

from __future__ import annotations

from collections.abc import Iterable

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.providers import installed
from kubefoundry_sdk.api.kinds import PODS, Object
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.provider.upstream_pods import roles, selector


class NotToBeFound(Exception):
    """Why the pods of a model cannot be read; one line."""


class NoSuchRole(Exception):
    """Which roles the pods of a model have instead; one line."""


async def of_model(session: Session, obj: Object, role: str | None = None) -> list[Object]:
    """All pods of the model's upstream object, or those of the role, by name. Raises NotToBeFound, NoSuchRole."""
    status = (obj.get("status") or {}).get("provider") or {}
    name, version = status.get("name"), str(status.get("resourceAPIVersion") or "")
    if not name:
        raise NotToBeFound("no provider is selected yet")
    package = installed().get(name)
    if package is None:
        raise NotToBeFound(f"the package of provider '{name}' is not installed with this command")
    if package.pods is None:
        raise NotToBeFound(f"{package.title} does not report which pods belong to a model")
    if "/" not in version or not status.get("resourceName"):
        raise NotToBeFound(f"{package.title} has not created anything yet")
    kind = package.upstream.served(version)
    try:
        upstream = await session.client.get(kind, status["resourceName"], obj["metadata"]["namespace"])
        values = package.pods.values(upstream)
        if not values:
            return []
        wanted = {"labelSelector": selector(package.pods, values)}
        # Also those of an earlier spec, which serve until the new ones do.
        found, _ = await session.client.list(PODS, obj["metadata"]["namespace"], selector=wanted)
    except (ApiError, Unreachable) as error:
        raise NotToBeFound(str(error)) from error
    known = {name for pod in found for name in roles(package.pods, pod)}
    if role is not None and found and role not in known:
        others = (
            f"they are {', '.join(sorted(known))}" if known else f"{package.title} gives its pods no roles"
        )
        raise NoSuchRole(f"no pod has the role '{role}': {others}")
    chosen = found if role is None else [pod for pod in found if role in roles(package.pods, pod)]
    return sorted(chosen, key=lambda pod: str(pod["metadata"]["name"]))


def containers_of(pods: Iterable[Object]) -> list[tuple[Object, str]]:
    """Each pod with the name of each of its containers, those that run first before the others."""
    return [
        (pod, container["name"])
        for pod in pods
        for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"])
    ]


def log_path(pod: Object, container: str, parameters: str) -> str:
    """Where the API server has the log. parameters: `tailLines=20&follow=true`."""
    meta = pod["metadata"]
    return (
        f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/log?container={container}&{parameters}"
    )
