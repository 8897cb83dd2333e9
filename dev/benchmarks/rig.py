"""The ground of a run: a control plane, our five processes, simulated upstream operators, and eyes on all of it."""

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
from kubefoundry_local.suite import Suite
from kubefoundry_local.upstream_crds import UpstreamCRD, upstream_crds
from kubefoundry_sdk.api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk.api.names import API_VERSION, MODEL_DEPLOYMENT
from kubefoundry_sdk.cluster import credentials
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.reflector import reflect
from kubefoundry_sdk.runtime.store import Key, key_of

MANAGER: Final = "benchmarks"

QUIET: Final = 0.3
"""Seconds without any change after which nothing is going on: ten times what the slowest hop takes."""

PATIENCE: Final = 300.0
"""Seconds that a wait may last before the run is given up: several times what the peer needs for a thousand."""

UPSTREAM: Final = {
    "kaito": Kind("kaito.sh", "v1beta1", "workspaces", "Workspace"),
    "dynamo": Kind("nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment"),
    "kuberay": Kind("ray.io", "v1", "rayservices", "RayService"),
}
"""The upstream kind of each provider whose system is simulated, in the version that is stored."""

KINDS: Final = {**UPSTREAM, "direct": DEPLOYMENTS}
"""And that of provider direct, which is Kubernetes' own."""

GPU: Final[dict[str, Any]] = {
    "model": {"id": "org/model"},
    "engine": {"type": "vllm", "trustRemoteCode": True},
    "resources": {"gpu": {"count": 1}},
}
"""vLLM on one GPU: every provider can; dynamo is selected."""

CPU: Final[dict[str, Any]] = {
    "model": {"id": "org/model-gguf"},
    "engine": {"type": "llamacpp"},
    "image": "example.com/llama-cpp:1.0.0",
    "resources": {"memory": "8Gi", "cpu": "4"},
}
"""llama.cpp without a GPU: kaito is selected."""


class Sightings:
    """What a watch shows, and when (seconds of `time.perf_counter`)."""

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.first_seen: dict[Key, float] = {}
        self.first_status: dict[Key, Object] = {}
        self.running: set[Key] = set()
        """Keys of objects whose `status.phase` is Running."""
        self.last_change = time.perf_counter()
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[float]]] = []

    def replace(self, objects: Iterator[Object], resource_version: str, *, rewound: bool) -> None:
        """Take the listed objects, and forget those that are gone."""
        listed = {key_of(obj): obj for obj in objects}
        for key in self.objects.keys() - listed.keys():
            self.remove(self.objects[key])
        for obj in listed.values():
            self.put(obj)

    def put(self, obj: Object) -> None:
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
        key = key_of(obj)
        for known in (self.objects, self.first_seen, self.first_status):
            known.pop(key, None)
        self.running.discard(key)
        self._changed()

    async def until(self, holds: Callable[[], bool]) -> float:
        """The moment at which `holds` is true, asked at every change. Raises CannotRun after PATIENCE."""
        if holds():
            return time.perf_counter()
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((holds, future))
        try:
            async with asyncio.timeout(PATIENCE):
                return await future
        except TimeoutError:
            shown = [
                {"name": obj["metadata"]["name"], **obj.get("status", {})} for obj in self.objects.values()
            ]
            raise CannotRun(
                f"what was waited for did not come about in {PATIENCE:.0f} s; last seen: {shown[-1:]}"
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
    """client: an administrator's. deployments, upstream: what is seen of our kind and of each provider's."""

    suite: Suite
    client: Client
    deployments: Sightings
    upstream: Mapping[str, Sightings]
    ground: str
    """Which control plane and which upstream CRDs: a line for the report."""
    _namespaces: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def namespace(self) -> str:
        """A namespace that did not exist."""
        name = f"bench-{next(self._namespaces)}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self.client.create(Kind("", "v1", "namespaces", "Namespace", False), body, manager=MANAGER)
        return name

    async def create(self, body: Object) -> Object:
        return await self.client.create(MODEL_DEPLOYMENTS, body, manager=MANAGER)

    async def create_all(self, bodies: Sequence[Object], at_once: int) -> list[float]:
        """All of them, so many requests on their way at a time; the milliseconds that each took."""
        taken: list[float] = []

        async def timed(body: Object) -> None:
            start = time.perf_counter()
            await self.create(body)
            taken.append((time.perf_counter() - start) * 1000)

        await at_a_time(at_once, (timed(body) for body in bodies))
        return taken

    async def run_all(self, bodies: Sequence[Object], at_once: int = 8) -> None:
        """Creates all of them and waits until they are Running and nothing happens any more."""
        keys = {key_of(body) for body in bodies}
        await self.create_all(bodies, at_once)
        await self.deployments.until(lambda: keys <= self.deployments.running)
        await self.quiet()

    async def clear(self, namespace: str) -> None:
        """Deletes the namespace's ModelDeployments and waits until they and all they made are gone."""
        for key, obj in list(self.deployments.objects.items()):
            if key[0] == namespace:
                uid = obj["metadata"]["uid"]
                await self.client.delete(MODEL_DEPLOYMENTS, key[1], namespace, uid=uid)
        for sightings in (self.deployments, *self.upstream.values()):
            await sightings.until(lambda: all(key[0] != namespace for key in sightings.objects))  # noqa: B023
        await self.quiet()

    async def quiet(self) -> None:
        """Waits until no watched object has changed for QUIET seconds."""
        everything = (self.deployments, *self.upstream.values())
        while (since := time.perf_counter() - max(item.last_change for item in everything)) < QUIET:  # noqa: ASYNC110
            await asyncio.sleep(QUIET - since)


async def at_a_time(number: int, calls: Iterable[Awaitable[object]]) -> None:
    """Awaits all of them, so many at a time; `calls` makes each when it is its turn."""
    waiting = iter(calls)

    async def work() -> None:
        for call in waiting:
            await call

    await asyncio.gather(*(work() for _ in range(number)))


def deployment(name: str, namespace: str, spec: Mapping[str, Any], provider: str | None = None) -> Object:
    """A ModelDeployment; `provider` names one explicitly."""
    full = {**spec, "provider": {"name": provider}} if provider else dict(spec)
    return {
        "apiVersion": API_VERSION,
        "kind": MODEL_DEPLOYMENT,
        "metadata": {"name": name, "namespace": namespace},
        "spec": full,
    }


@asynccontextmanager
async def rig(folder: Path) -> AsyncIterator[Rig]:
    """Everything started, ready and at rest. All of it ends with the block."""
    say("starting the control plane")
    crds = upstream_crds()
    flags = [flag for crd in crds for flag in ("--crds", str(crd.file))]
    with own_control_plane(folder / "plane", flags) as plane:
        suite = Suite(plane, folder / "suite")
        suite.install_ground()
        try:
            say("starting our processes and the simulated upstream operators")
            suite.simulate(*UPSTREAM, flags=["--no-services"])
            suite.start()
            async with (
                Client(credentials.from_kubeconfig(str(plane.kubeconfig)), user_agent=MANAGER) as client,
                asyncio.TaskGroup() as group,
            ):
                made = Rig(
                    suite,
                    client,
                    Sightings(),
                    {provider: Sightings() for provider in UPSTREAM},
                    await _ground(client, crds),
                )
                watches = [
                    group.create_task(reflect(client, kind, sink))
                    for kind, sink in (
                        (MODEL_DEPLOYMENTS, made.deployments),
                        *((UPSTREAM[provider], sink) for provider, sink in made.upstream.items()),
                    )
                ]
                await made.quiet()
                yield made
                for watch in watches:
                    watch.cancel()
        finally:
            suite.stop()


async def _ground(client: Client, crds: Sequence[UpstreamCRD]) -> str:
    version = (await client.read("/version"))["gitVersion"]
    installed = ", ".join(crd.label for crd in crds)
    return (
        f"kube-apiserver {version}, upstream CRDs {installed}, operators simulated at 100 times their speed"
    )


def say(text: str) -> None:
    """Progress, to stderr."""
    print(f"bench: {text}", file=sys.stderr, flush=True)
