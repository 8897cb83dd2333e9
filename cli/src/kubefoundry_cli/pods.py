"""Find the pods of a model by the label that its provider declares for the pods of its upstream object."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Final

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.health import provider_of
from kubefoundry_cli.providers import installed
from kubefoundry_sdk._api.handover import holders
from kubefoundry_sdk._api.kinds import PODS, Kind, Object
from kubefoundry_sdk._api.untrusted import part
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.upstream_pods import roles, selector

LOG_SECONDS: Final = 10.0
"""Seconds to wait for a log that is not followed. The API server waits minutes for a kubelet."""


class NoLog(Exception):
    """A log, or its rest, cannot be read; the message is the reason in one line."""


class NotToBeFound(Exception):
    """The pods of a model cannot be read; the message is the reason in one line."""


class NoSuchRole(Exception):
    """No pod of a model has the role; the message has the present roles in one line."""


async def of_model(session: Session, obj: Object, role: str | None = None) -> list[Object]:
    """Return the pods of the model's upstream object, or only those of a role, sorted by name.

    Raises:
        NotToBeFound: The pods cannot be read.
        NoSuchRole: The model has pods, but none of that role.
    """
    package = _serving_package(obj)
    if package.pods is None:
        raise NotToBeFound(f"{package.title} does not report which pods belong to a model")
    if (upstream_reference := serving_object(obj, package)) is None:
        raise NotToBeFound(f"{package.title} has not created anything yet")
    kind, upstream_name = upstream_reference
    try:
        upstream = await session.client.get(kind, upstream_name, obj["metadata"]["namespace"])
        values = package.pods.values(upstream)
        if not values:
            return []
        label_selector = {"labelSelector": selector(package.pods, values)}
        # The list includes pods of an earlier spec, which serve until the new pods do.
        pods, _ = await session.client.list(PODS, obj["metadata"]["namespace"], selector=label_selector)
    except (ApiError, Unreachable) as error:
        raise NotToBeFound(str(error)) from error
    chosen = pods if role is None else _of_role(pods, role, package)
    return sorted(chosen, key=lambda pod: str(pod["metadata"]["name"]))


def _serving_package(obj: Object) -> Provider:
    packages = installed()
    name = serving_provider(obj, packages)
    if name is None:
        raise NotToBeFound("no provider is selected yet")
    package = packages.get(name)
    if package is None:
        raise NotToBeFound(f"the package of provider '{name}' is not installed with this command")
    return package


def _of_role(pods: Sequence[Object], role: str, package: Provider) -> list[Object]:
    assert package.pods is not None
    pod_roles = {name for pod in pods for name in roles(package.pods, pod)}
    if pods and role not in pod_roles:
        others = (
            f"they are {', '.join(sorted(pod_roles))}"
            if pod_roles
            else f"{package.title} gives its pods no roles"
        )
        raise NoSuchRole(f"no pod has the role '{role}': {others}")
    return [pod for pod in pods if role in roles(package.pods, pod)]


def serving_provider(obj: Object, packages: Mapping[str, Provider]) -> str | None:
    """Return the provider whose upstream object serves; None if no provider is selected.

    While a change of the provider is pending, the status has the new name and the object of the previous one.
    """
    selected = provider_of(obj)
    others = [name for name in holders(obj) if name != selected]
    for name in (*others, selected):
        package = packages.get(name or "")
        if package is not None and serving_object(obj, package) is not None:
            return name
    return others[0] if others else selected


def serving_object(obj: Object, package: Provider) -> tuple[Kind, str] | None:
    """Return kind and name of the upstream object in the status; None if it has none of the package's kind."""
    status = part(obj, "status", "provider")
    group, _, version = str(status.get("resourceAPIVersion") or "").rpartition("/")
    upstream, name = package.upstream, status.get("resourceName")
    if not (group and name) or (status.get("resourceKind"), group) != (upstream.kind, upstream.group):
        return None
    return upstream.served(f"{group}/{version}"), str(name)


def containers_of(pods: Iterable[Object]) -> list[tuple[Object, str]]:
    """Return each pod with the name of each of its containers, init containers first."""
    return [
        (pod, container["name"])
        for pod in pods
        for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"])
    ]


async def log_lines(
    session: Session,
    pod: Object,
    container: str,
    parameters: str,
    *,
    follow: bool = False,
    is_whole: bool = False,
) -> AsyncIterator[bytes]:
    """Yield the lines of a container's log.

    Args:
        session: The cluster.
        pod: The pod.
        container: The name of the container.
        parameters: A query such as `tailLines=20&previous=true`.
        follow: Whether to go on with new lines, for as long as it takes.
        is_whole: Whether LOG_SECONDS limit the whole log. Otherwise they limit the wait for each line.

    Raises:
        NoLog: The pod is not scheduled, or a line or the end does not arrive in time.
        ApiError: The API server refuses.
        Unreachable: The API server does not answer.
    """
    meta, time = pod["metadata"], asyncio.get_running_loop().time
    if not pod["spec"].get("nodeName"):
        # The API server answers with an empty log.
        raise NoLog("not scheduled yet")
    lines = session.client.lines(
        f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/log?container={container}"
        f"&follow={str(follow).lower()}&{parameters}"
    )
    end = time() + LOG_SECONDS
    while True:
        try:
            async with asyncio.timeout_at(None if follow else end):
                line = await anext(lines, None)
        except TimeoutError:
            raise NoLog(f"the rest of the log did not arrive within {LOG_SECONDS:.0f} s") from None
        if line is None:
            return
        yield line
        if not is_whole:
            end = time() + LOG_SECONDS
