"""The setup of a run: a control plane, our five processes, simulated upstream operators, and watches of all."""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kubefoundry_local.control_plane import CannotRun, own_control_plane
from kubefoundry_local.suite import Component, Suite
from kubefoundry_local.upstream_crds import UpstreamCRD, upstream_crds
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, NAMESPACES, Kind, Object
from kubefoundry_sdk._api.names import API_VERSION, MODEL_DEPLOYMENT
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.reflector import reflect
from kubefoundry_sdk._runtime.store import Key, key_of

MANAGER: Final = "benchmarks"

QUIET: Final = 0.3
"""Seconds without a change after which the system is at rest: ten times the duration of the slowest step."""

PATIENCE: Final = 300.0
"""Seconds of a wait before the run fails: several times the duration for a thousand deployments."""

UPSTREAM: Final = {
    "kaito": Kind("kaito.sh", "v1beta1", "workspaces", "Workspace"),
    "dynamo": Kind("nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment"),
    "kuberay": Kind("ray.io", "v1", "rayservices", "RayService"),
}
"""The upstream kind of each provider with a simulated operator, in the stored version."""

WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)

KINDS: Final = {**UPSTREAM, "direct": DEPLOYMENTS}
"""The upstream kind of each provider, with provider direct."""

GPU: Final[dict[str, Any]] = {
    "model": {"id": "org/model"},
    "engine": {"type": "vllm", "trustRemoteCode": True},
    "resources": {"gpu": {"count": 1}},
}
"""vLLM on one GPU. Every provider supports it, and dynamo is selected."""

CPU: Final[dict[str, Any]] = {
    "model": {"id": "org/model-gguf"},
    "engine": {"type": "llamacpp"},
    "image": "example.com/llama-cpp:1.0.0",
    "resources": {"memory": "8Gi", "cpu": "4"},
}
"""llama.cpp without a GPU. kaito is selected."""


class Sightings:
    """The objects of a watch, with the times of their events in seconds of `time.perf_counter`."""

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.first_seen: dict[Key, float] = {}
        self.first_status: dict[Key, Object] = {}
        self.running: set[Key] = set()
        """Keys of objects whose `status.phase` is Running."""
        self.last_change = time.perf_counter()
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[float]]] = []

    def replace(self, objects: Iterator[Object], resource_version: str, *, rewound: bool) -> None:
        """Record the listed objects, and remove all others."""
        listed = {key_of(obj): obj for obj in objects}
        for key in self.objects.keys() - listed.keys():
            self.remove(self.objects[key])
        for obj in listed.values():
            self.put(obj)

    def put(self, obj: Object) -> None:
        """Record a new or changed object."""
        key = key_of(obj)
        self.objects[key] = obj
        self.first_seen.setdefault(key, time.perf_counter())
        status = obj.get("status") or {}
        if status:
            self.first_status.setdefault(key, status)
        if status.get("phase") == "Running":
            self.running.add(key)
        else:
            self.running.discard(key)
        self._changed()

    def remove(self, obj: Object) -> None:
        """Remove a deleted object."""
        key = key_of(obj)
        for by_key in (self.objects, self.first_seen, self.first_status):
            by_key.pop(key, None)
        self.running.discard(key)
        self._changed()

    async def until(self, holds: Callable[[], bool]) -> float:
        """Wait until the condition `holds`, which is checked after each change, and return the time.

        Raises:
            CannotRun: The condition was not true within PATIENCE.
        """
        if holds():
            return time.perf_counter()
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((holds, future))
        try:
            async with asyncio.timeout(PATIENCE):
                return await future
        except TimeoutError:
            statuses = [
                {"name": obj["metadata"]["name"], **obj.get("status", {})} for obj in self.objects.values()
            ]
            raise CannotRun(
                f"a condition was not true within {PATIENCE:.0f} s; status of the last object: {statuses[-1:]}"
            ) from None

    def _changed(self) -> None:
        self.last_change = time.perf_counter()
        for entry in list(self._waiting):
            holds, future = entry
            if future.done():
                self._waiting.remove(entry)
            elif holds():
                future.set_result(self.last_change)
                self._waiting.remove(entry)


@dataclass(slots=True)
class Rig:
    """A running system.

    Attributes:
        suite: The control plane and our processes.
        client: A client with the rights of an administrator.
        deployments: The watch of ModelDeployments.
        upstream: The watch of each provider's upstream kind.
        ground: The control plane and the upstream CRDs, as a line for the report.
    """

    suite: Suite
    client: Client
    deployments: Sightings
    upstream: Mapping[str, Sightings]
    ground: str
    _namespaces: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def namespace(self) -> str:
        """Create a new namespace, and return its name."""
        name = f"bench-{next(self._namespaces)}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self.client.create(NAMESPACES, body, manager=MANAGER)
        return name

    async def create(self, body: Object) -> Object:
        """Create a ModelDeployment."""
        return await self.client.create(MODEL_DEPLOYMENTS, body, manager=MANAGER)

    async def create_all(self, bodies: Sequence[Object], at_once: int) -> list[float]:
        """Create ModelDeployments with `at_once` concurrent requests, and return the milliseconds of each request."""
        taken: list[float] = []

        async def timed(body: Object) -> None:
            start = time.perf_counter()
            await self.create(body)
            taken.append((time.perf_counter() - start) * 1000)

        await run_concurrently(at_once, (timed(body) for body in bodies))
        return taken

    async def run_all(self, bodies: Sequence[Object], at_once: int = 8) -> None:
        """Create ModelDeployments, and wait until they are Running and nothing changes any more."""
        keys = {key_of(body) for body in bodies}
        await self.create_all(bodies, at_once)
        await self.deployments.until(lambda: keys <= self.deployments.running)
        await self.quiet()

    async def clear(self, namespace: str) -> None:
        """Delete the namespace's ModelDeployments, and wait until they and their upstream objects are gone."""
        for key, obj in list(self.deployments.objects.items()):
            if key[0] == namespace:
                uid = obj["metadata"]["uid"]
                await self.client.delete(MODEL_DEPLOYMENTS, key[1], namespace, uid=uid)
        for sightings in (self.deployments, *self.upstream.values()):
            await sightings.until(lambda: all(key[0] != namespace for key in sightings.objects))  # noqa: B023
        await self.quiet()

    async def quiet(self) -> None:
        """Wait until no watched object has changed for QUIET seconds."""
        everything = (self.deployments, *self.upstream.values())
        while (since := time.perf_counter() - max(item.last_change for item in everything)) < QUIET:  # noqa: ASYNC110
            await asyncio.sleep(QUIET - since)


async def run_concurrently(number: int, calls: Iterable[Awaitable[object]]) -> None:
    """Await the calls, `number` at a time. A lazy iterable creates each call just before it starts."""
    queue = iter(calls)

    async def work() -> None:
        # The workers share the iterator, so each call is taken once.
        for call in queue:
            await call

    await asyncio.gather(*(work() for _ in range(number)))


def deployment(name: str, namespace: str, spec: Mapping[str, Any], provider: str | None = None) -> Object:
    """Return a ModelDeployment. `provider` is the provider that its spec names."""
    return {
        "apiVersion": API_VERSION,
        "kind": MODEL_DEPLOYMENT,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**spec, "provider": {"name": provider}} if provider else dict(spec),
    }


@asynccontextmanager
async def start_rig(folder: Path, *, in_kopf: bool = False) -> AsyncIterator[Rig]:
    """Start all processes, and wait until they are ready and at rest. All of them end with the block.

    Args:
        folder: The folder of logs and data.
        in_kopf: Run each component in a kopf operator of its own instead of its process.
    """
    say("starting the control plane")
    crds = upstream_crds()
    flags = [flag for crd in crds for flag in ("--crds", str(crd.file))]
    with own_control_plane(folder / "plane", flags) as plane:
        suite = Suite(plane, folder / "suite")
        suite.install_ground()
        try:
            say("starting our processes and the simulated upstream operators")
            suite.simulate(*UPSTREAM, flags=["--no-services"])
            suite.install_missing()
            if in_kopf:
                for component in suite.components.values():
                    run_in_kopf(component)
            suite.start()
            async with (
                Client(credentials.from_kubeconfig(str(plane.kubeconfig)), user_agent=MANAGER) as client,
                asyncio.TaskGroup() as group,
            ):
                rig = Rig(
                    suite,
                    client,
                    Sightings(),
                    {provider: Sightings() for provider in UPSTREAM},
                    await _ground(client, crds),
                )
                watches = [
                    group.create_task(reflect(client, kind, sink))
                    for kind, sink in (
                        (MODEL_DEPLOYMENTS, rig.deployments),
                        *((UPSTREAM[provider], sink) for provider, sink in rig.upstream.items()),
                    )
                ]
                await rig.quiet()
                yield rig
                for watch in watches:
                    watch.cancel()
        finally:
            suite.stop()


def run_in_kopf(component: Component) -> None:
    """Replace the component's command by `kopf run` with its module."""
    operator = ["run", "--standalone", "--all-namespaces", "-m", f"kubefoundry_{component.name}.kopf"]
    component.command = [str(Path(sys.executable).parent / "kopf"), *operator]
    component.environment["KUBEFOUNDRY_LEADER_ELECT"] = "true"


async def _ground(client: Client, crds: Sequence[UpstreamCRD]) -> str:
    version = (await client.read("/version"))["gitVersion"]
    installed = ", ".join(crd.label for crd in crds)
    return (
        f"kube-apiserver {version}, upstream CRDs {installed}, operators simulated at 100 times their speed"
    )


def say(text: str) -> None:
    """Print a line about the progress to stderr."""
    print(f"bench: {text}", file=sys.stderr, flush=True)
