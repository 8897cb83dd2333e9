"""A running operator and node with images of providers that have services."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from kubefoundry_llamastack.names import LLSD, PODS, SERVICE_ACCOUNTS
from kubefoundry_local.suite import Suite
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from pods.images import distribution, provider
from pods.llama_stack.distributions import serving_pod, until_ready
from pods.rig import running_node
from support.llamastack_plane import plane_with_crds
from support.waiting import until

NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Rig:
    """The control plane and its node. work: a folder for images."""

    suite: Suite
    node: Node
    work: Path

    def client(self) -> Client:
        """Return an administrator's client."""
        admin = credentials.from_kubeconfig(str(self.suite.plane.kubeconfig))
        return Client(admin, user_agent="measurement")

    def add_services(self, names: Sequence[str]) -> None:
        """Build images of providers with services, `example.com/NAME:1` for each name."""
        sources = {f"example.com/{name}:1": provider.scaffolded_service(name) for name in names}
        for image in provider.served(sources, self.work / "services"):
            self.node.add(image)

    def folder(self, pod: Object) -> Path:
        """Return the folder of a pod on the node."""
        return self.node.logs.parent / "pods" / str(pod["metadata"]["uid"])


@contextmanager
def running(work: Path) -> Iterator[Rig]:
    """Yield a rig with the distribution's image. Raises CannotRun."""
    with plane_with_crds(work, own=True) as suite:
        (work / "node").mkdir()
        with running_node(suite, work / "node") as node:
            node.add(distribution.image(work / "distribution"))
            yield Rig(suite, node, work)


async def deployed(api: Client, cr: Object) -> Object:
    """Create the CR, and return the pod of its server once it serves."""
    name = cr["metadata"]["name"]
    await until(api, SERVICE_ACCOUNTS, "default", NAMESPACE, lambda found: found is not None)
    await api.create(LLSD, cr, manager="user")
    await until_ready(api, name, NAMESPACE)
    return await serving_pod(api, name, NAMESPACE)


async def removed(api: Client, pod: Object, cr: Object) -> None:
    """Delete the CR, and wait until its pod is gone."""
    live = await api.get(LLSD, cr["metadata"]["name"], NAMESPACE)
    await api.delete(LLSD, cr["metadata"]["name"], NAMESPACE, uid=live["metadata"]["uid"])
    await until(api, PODS, pod["metadata"]["name"], NAMESPACE, lambda found: found is None)


def states(pod: Object) -> dict[str, Object]:
    """Return the state of each container by name."""
    status = pod["status"]
    items = [*status.get("initContainerStatuses", ()), *status["containerStatuses"]]
    return {item["name"]: item["state"] for item in items}


def began(state: Object) -> datetime:
    """Return when a running container started, in whole seconds."""
    return datetime.fromisoformat(state["running"]["startedAt"])


def ended(state: Object) -> datetime:
    """Return when a container ended, in whole seconds."""
    return datetime.fromisoformat(state["terminated"]["finishedAt"])


def created(pod: Object) -> datetime:
    """Return when the pod was created, in whole seconds."""
    return datetime.fromisoformat(pod["metadata"]["creationTimestamp"])


def ready(pod: Object) -> datetime:
    """Return when a ready pod became ready, in whole seconds."""
    [condition] = [item for item in pod["status"]["conditions"] if item["type"] == "Ready"]
    return datetime.fromisoformat(condition["lastTransitionTime"])


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
