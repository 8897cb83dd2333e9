"""A model on a real provider in memory, and pods whose generations are known to the test, not to the provider."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kubefoundry_direct.provider import provider as direct
from kubefoundry_direct.settings import Settings
from kubefoundry_dynamo.provider import with_defaults as dynamo
from kubefoundry_kaito.provider import with_defaults as kaito
from kubefoundry_kuberay.provider import with_defaults as kuberay
from kubefoundry_sdk import Deployment, Object, Provider, Rendered
from kubefoundry_sdk._api.names import APPLIED_GENERATION_ANNOTATION
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing import Harness
from support.deployments import CPU, GPU
from support.upstream import standin

REPLICAS: Final = 2
"""KAITO serves one replica."""
FOREIGN: Final = 99
"""The generation of pods that have the spec of somebody else."""
FOREIGN_NAME: Final = "name-of-others"
IMPLEMENTED: Final = frozenset({"name", "image", "command", "args", "env", "ports"})
"""Fields of a container that the API server in memory has."""


@dataclass
class Pod:
    """A pod of the model.

    Attributes:
        generation: The generation of the ModelDeployment that it was created for, or `FOREIGN`.
        newest: Whether it has the newest spec that the upstream has seen.
        ready: Whether it answers requests.
    """

    generation: int
    newest: bool = True
    ready: bool = True


@dataclass
class World:
    """The model, its upstream and its pods. Each method but `start` is a step of a history.

    Attributes:
        provider: The provider's name.
        harness: The provider in memory.
        random: The choices.
        pods: The pods that exist.
        seen: The generation of the upstream object that the upstream has seen.
        uid: The uid of the upstream object.
        generation: The generation of the ModelDeployment that the upstream has seen, or `FOREIGN`.
    """

    provider: str
    harness: Harness
    random: random.Random
    pods: list[Pod] = field(default_factory=list)
    seen: int = 0
    uid: str = ""
    generation: int = 0

    async def start(self) -> None:
        """Create the model, and let it serve."""
        await self.harness.create(spec(self.provider))
        await self.serve()

    async def serve(self) -> None:
        """Complete the rollout of the newest spec."""
        self._see()
        self.pods = [Pod(self.generation) for _ in range(self._replicas)]
        await self._report()

    async def edit(self) -> None:
        """Change the model's name in requests. The upstream has not seen it."""
        number = self.harness.model["metadata"]["generation"] + 1
        await self.harness.edit({"model": {"servedName": f"name-{number}"}})
        self._replace_object()

    async def see(self) -> None:
        """Begin the rollout: the upstream has seen the newest spec, and creates its first pod."""
        if self._see() or not any(pod.newest for pod in self.pods):
            self.pods.append(Pod(self.generation, ready=False))
        await self._report()

    async def fail(self) -> None:
        """Let all pods fail at once."""
        for pod in self.pods:
            pod.ready = False
        await self._report()

    async def recover(self) -> None:
        """Let the pods of one generation serve."""
        generation = self.random.choice([pod.generation for pod in self.pods])
        for pod in self.pods:
            pod.ready = pod.ready or pod.generation == generation
        await self._report()

    async def restart(self) -> None:
        """Restart the provider's process."""
        await self.harness.restart()

    async def drift(self) -> None:
        """Change the pods' command line upstream, which the provider reverts. The upstream may not have seen it."""
        await self.change_upstream(self.random.randint(0, self._replicas))

    async def drift_unseen(self) -> None:
        """Change the pods' command line upstream, and maybe the spec, while the provider is down."""
        count, is_edited = self.random.randint(0, self._replicas), self.random.random() < 0.5
        await self.change_upstream(count, is_down=True, is_edited=is_edited)

    async def change_upstream(
        self,
        count: int,
        *,
        is_down: bool = False,
        is_edited: bool = False,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Change the pods' command line upstream, as somebody else does, and roll that out to so many pods.

        `is_down`: whether the provider is down until then. `is_edited`: whether the spec is edited meanwhile.
        `annotations`: those of the object from then on; None keeps them, as an edit does.
        """
        if is_down:
            await self.harness._end()
        obj = self.harness.upstream_object
        content = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
        assert _rename(content), content
        if annotations is not None:
            obj["metadata"]["annotations"] = dict(annotations)
        self.harness.put({**obj, **content}, manager="kubectl-edit")
        # KAITO rolls out no change of a Workspace.
        if count and self.provider != "kaito":
            self._see()
            self.pods = [*self.pods[count:], *(Pod(self.generation) for _ in range(count))]
            await self._report()
        if is_edited:
            await self.edit()
        if is_down:
            await self.harness._start()
        await self.harness.advance(5)
        self._replace_object()

    async def wait(self) -> None:
        """Let time pass."""
        await self.harness.advance(600)

    @property
    def _replicas(self) -> int:
        return 1 if self.provider == "kaito" else REPLICAS

    def _see(self) -> bool:
        """Take in the newest spec. Return whether it is another one."""
        live = self.harness.upstream_object
        self._replace_object()
        is_foreign = FOREIGN_NAME in str(live)
        generation = (
            FOREIGN if is_foreign else int(live["metadata"]["annotations"][APPLIED_GENERATION_ANNOTATION])
        )
        is_new = generation != self.generation
        for pod in self.pods:
            pod.newest = pod.generation == generation
        self.seen, self.generation = live["metadata"]["generation"], generation
        return is_new

    def _replace_object(self) -> None:
        """Remove the pods of an object that was recreated."""
        uid = self.harness.upstream_object["metadata"]["uid"]
        if uid != self.uid:
            self.uid, self.pods, self.seen, self.generation = uid, [], 0, 0

    async def _report(self) -> None:
        if self.seen:
            await self.harness.upstream(STATUSES[self.provider](self.pods, self.seen, self._replicas))


def _rename(value: Any) -> bool:
    """Replace the model's name in requests in the first text that has it. Return whether one has."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, dict | list):
            if _rename(item):
                return True
        elif isinstance(item, str) and "name-" in item:
            value[key] = re.sub(r"name-\d+", FOREIGN_NAME, item)
            return True
    return False


def spec(provider: str) -> Object:
    """Return a spec that the provider supports."""
    if provider == "direct":
        chosen = CPU
    elif provider == "kaito":
        chosen = {**GPU, "image": "example.com/vllm:1.0.0"}
    else:
        chosen = GPU
    model = {**chosen["model"], "servedName": "name-1"}
    return {**chosen, "model": model, "scaling": {"replicas": 1 if provider == "kaito" else REPLICAS}}


def harness(provider: str) -> Harness:
    """Return the provider in memory, with its CRD."""
    return Harness(PROVIDERS[provider], None if provider == "direct" else standin(provider).document)


def _of_deployment(pods: list[Pod], seen: int, replicas: int) -> Object:
    return {"observedGeneration": seen, **_counts(pods)}


def _counts(pods: list[Pod]) -> Object:
    ready = sum(pod.ready for pod in pods)
    counts = {"replicas": len(pods), "updatedReplicas": sum(pod.newest for pod in pods)}
    return {**counts, "readyReplicas": ready, "availableReplicas": ready}


def _complete(pods: list[Pod], replicas: int) -> bool:
    return sum(pod.newest and pod.ready for pod in pods) == len(pods) == replicas


def _condition(type_: str, *, holds: bool) -> Object:
    time = "2026-01-01T00:00:00Z"
    return {
        "type": type_,
        "status": str(holds),
        "reason": "x",
        "message": "words",
        "lastTransitionTime": time,
    }


def _of_graph(pods: list[Pod], seen: int, replicas: int) -> Object:
    complete = _complete(pods, replicas)
    ready = _condition("Ready", holds=complete)
    frontend = {"kind": "Deployment", "componentName": "m-frontend", **_counts([Pod(0)])}
    workers = {"kind": "Deployment", "componentName": "m-worker", **_counts(pods)}
    state = "successful" if complete else "pending"
    services = {"Frontend": frontend, "VllmWorker": workers}
    return {"observedGeneration": seen, "state": state, "conditions": [ready], "services": services}


def _of_service(pods: list[Pod], seen: int, replicas: int) -> Object:
    serving = sum(pod.ready for pod in pods)
    application = {"llm": {"status": "RUNNING" if _complete(pods, replicas) else "DEPLOYING"}}
    cluster = {"rayClusterName": "m-x", "applicationStatuses": application}
    return {
        "observedGeneration": seen,
        "serviceStatus": "Running" if serving else "",
        "numServeEndpoints": serving + 1 if serving else 0,
        "conditions": [_condition("Ready", holds=serving > 0)],
        "activeServiceStatus": {**cluster, "rayClusterStatus": {"readyWorkerReplicas": serving}},
    }


def _of_workspace(pods: list[Pod], seen: int, replicas: int) -> Object:
    inference = _condition("InferenceReady", holds=any(pod.ready for pod in pods))
    return {"conditions": [{**inference, "observedGeneration": seen}]}


STATUSES: Final[Mapping[str, Callable[[list[Pod], int, int], Object]]] = {
    "direct": _of_deployment,
    "dynamo": _of_graph,
    "kuberay": _of_service,
    "kaito": _of_workspace,
}
"""The status that each upstream reports."""


def _in_memory(provider: Provider) -> Provider:
    """Return provider direct, without the fields of a pod that the API server in memory does not have."""

    def render(deployment: Deployment, schema: Schema) -> Rendered:
        rendered = provider.render(deployment, schema)
        pod: Any = rendered.main["spec"]["template"]["spec"]
        containers = [
            {name: value for name, value in container.items() if name in IMPLEMENTED}
            for container in pod["containers"]
        ]
        template = {**rendered.main["spec"]["template"], "spec": {"containers": containers}}
        main = {**rendered.main, "spec": {**rendered.main["spec"], "template": template}}
        return replace(rendered, main=main)

    return replace(provider, render=render)


PROVIDERS: Final[Mapping[str, Provider]] = {
    "direct": _in_memory(direct(Settings())),
    "dynamo": dynamo(),
    "kuberay": kuberay(),
    "kaito": kaito(),
}
