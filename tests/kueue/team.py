"""A team: a namespace with a queue of Kueue, its quota, and its models."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import yaml

from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk.pod import QUEUE_LABEL
from kueue.rig import POOL_LABEL
from support.deployments import GPU, model_deployment
from support.waiting import phase, until_deployment

QUEUE: Final = "models"
PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
API: Final = "kueue.x-k8s.io/v1beta2"
FLAVOR: Final = "gpu"


@dataclass(slots=True)
class Team:
    """The name is that of the namespace and of the ClusterQueue."""

    api: Client
    plane: ControlPlane
    name: str

    async def create(
        self, model: str, provider: str, *, priority: str = "", queue: str = QUEUE, **spec: Any
    ) -> Object:
        """Create a model that asks for one GPU in the queue; an empty text leaves a label out."""
        stated = {QUEUE_LABEL: queue, PRIORITY_LABEL: priority}
        labels = {key: value for key, value in stated.items() if value}
        body = model_deployment(model, self.name, {**GPU, **spec}, provider=provider, labels=labels)
        return await self.api.create(MODEL_DEPLOYMENTS, body, manager="test")

    async def edit(self, model: str, pointer: str, value: Any) -> Object:
        """Set a field of a model by a JSON pointer."""
        operations = [{"op": "add", "path": pointer, "value": value}]
        return await self.api.json_patch(MODEL_DEPLOYMENTS, model, self.name, operations, manager="test")

    async def until(self, model: str, expected: str, *words: str, generation: int = 0) -> Object:
        """Return a model once it has that phase, and its message has the words."""

        def holds(obj: Object) -> bool:
            status = obj.get("status") or {}
            return (
                phase(obj) == expected
                and all(word in status.get("message", "") for word in words)
                and status.get("observedGeneration", 0) >= generation
            )

        return await until_deployment(self.api, model, self.name, holds)

    async def until_object(self, model: str, holds: Callable[[Object], Any]) -> Object:
        """Return a model once `holds` is true of it."""
        return await until_deployment(self.api, model, self.name, holds)

    def add_queue(self, name: str) -> None:
        """Create another queue with the team's quota."""
        _apply(self.plane, _local_queue(name, self.name))

    def grant(self, gpus: int) -> None:
        """Set the quota."""
        self._patch({"resourceGroups": _quota(gpus)})

    def stop(self) -> None:
        """Stop the ClusterQueue, and evict what has quota there."""
        self._patch({"stopPolicy": "HoldAndDrain"})

    def resume(self) -> None:
        """Continue after `stop`."""
        self._patch({"stopPolicy": "None"})

    def upstream(self, kind: str, name: str) -> Any:
        """Return an object of the namespace."""
        return json.loads(self.plane.kubectl("get", kind, name, "-n", self.name, "-o", "json").stdout)

    def events(self, model: str) -> list[str]:
        """Return the reasons of the Events about a model."""
        selector = f"involvedObject.name={model},involvedObject.kind=ModelDeployment"
        listed = self.plane.kubectl(
            "get", "events", "-n", self.name, "--field-selector", selector, "-o", "json"
        ).stdout
        return [event["reason"] for event in json.loads(listed)["items"]]

    def _patch(self, spec: dict[str, Any]) -> None:
        patch = json.dumps({"spec": spec})
        self.plane.kubectl("patch", "clusterqueue", self.name, "--type", "merge", "-p", patch)


def create_flavor(plane: ControlPlane) -> None:
    """Create the flavor of all GPUs, and a priority. Kueue writes the flavor's labels into node selectors."""
    flavor = _object("ResourceFlavor", FLAVOR, spec={"nodeLabels": {POOL_LABEL: "gpu"}})
    _apply(plane, flavor, _object("WorkloadPriorityClass", "production", value=1000))


def create_team(plane: ControlPlane, name: str) -> None:
    """Create the namespace, and its queue with quota for one GPU."""
    spec = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": _quota(1),
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    _apply(plane, namespace, _object("ClusterQueue", name, spec=spec), _local_queue(QUEUE, name))


def _local_queue(name: str, team: str) -> dict[str, Any]:
    queue = _object("LocalQueue", name, spec={"clusterQueue": team})
    queue["metadata"]["namespace"] = team
    return queue


def _quota(gpus: int) -> list[dict[str, Any]]:
    amounts = {"cpu": 64, "memory": "512Gi", "nvidia.com/gpu": gpus}
    resources = [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()]
    return [{"coveredResources": list(amounts), "flavors": [{"name": FLAVOR, "resources": resources}]}]


def _object(kind: str, name: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, **content}


def _apply(plane: ControlPlane, *objects: dict[str, Any]) -> None:
    plane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(objects))
