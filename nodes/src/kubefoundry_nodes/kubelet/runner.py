"""The node: runs the pods of a cluster as processes of this machine.

Its event loop has a thread of its own, so that tests may block. Linux ends a process that asked for it when the
thread that made it ends: no container outlives the runner, however it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kubefoundry_nodes.kubelet import (
    addresses,
    claims,
    environment,
    node_object,
    services,
)
from kubefoundry_nodes.kubelet.image import Image
from kubefoundry_nodes.kubelet.kubelet_client import (
    CLAIMS,
    ENDPOINT_SLICES,
    MANAGER,
    NODES,
    SERVICES,
    KubeletClient,
)
from kubefoundry_nodes.kubelet.names import Names
from kubefoundry_nodes.kubelet.pod import GRACE, Ground, PodLife
from kubefoundry_sdk.api.kinds import PODS, Kind, Object
from kubefoundry_sdk.cluster import credentials
from kubefoundry_sdk.cluster.errors import ApiError
from kubefoundry_sdk.cluster.reflector import reflect

Key = tuple[str, str]


@dataclass(slots=True)
class Seen:
    """The objects of a kind, kept by a watch. changed: is called after every change."""

    changed: Callable[[], None]
    objects: dict[Key, Object] = field(default_factory=dict)
    listed: asyncio.Event = field(default_factory=asyncio.Event)

    def replace(self, objects: Iterator[Object], resource_version: str, *, rewound: bool) -> None:
        self.objects = {key(one): one for one in objects}
        self.listed.set()
        self.changed()

    def put(self, obj: Object) -> None:
        self.objects[key(obj)] = obj
        self.changed()

    def remove(self, obj: Object) -> None:
        self.objects.pop(key(obj), None)
        self.changed()


def key(obj: Object) -> Key:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


class Node:
    """images: those that the node can pull, by name; may change at any time. logs: a folder for each pod, in it one
    for each container, in it a file for each run."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self.images: dict[str, Image] = {}
        self.logs = folder / "logs"
        self.names = Names()
        self._folder = folder
        self._kubeconfig = kubeconfig
        self._thread = threading.Thread(target=self._run, name="pod-runner", daemon=True)
        self._begun = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None

    def add(self, image: Image) -> None:
        self.images[image.name] = image

    def remove_image(self, name: str) -> None:
        """From now on it cannot be pulled."""
        del self.images[name]

    def log(self, namespace: str, pod: str, container: str, run: int = -1) -> str:
        """What a run of the container wrote so far, the last one's by default; of the newest pod of that name."""
        pods = sorted(self.logs.glob(f"{namespace}_{pod}_*"), key=lambda path: path.stat().st_ctime_ns)
        runs = sorted((pods[-1] / container).iterdir(), key=lambda path: int(path.stem))
        return runs[run].read_text(errors="replace")

    def start(self) -> None:
        """Returns once the node is registered. Raises what went wrong."""
        self._thread.start()
        self._begun.wait()
        self.check()

    def check(self) -> None:
        """Raises what made the runner end."""
        if self._failure:
            raise RuntimeError("the pod runner failed") from self._failure

    def stop(self) -> None:
        """Kills all containers. Raises what made the runner end before."""
        if self._loop and self._main:
            # It may have ended, and said why: see below.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._main.cancel)
        self._thread.join()
        self.check()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except asyncio.CancelledError:
            pass
        except BaseException as failure:
            self._failure = failure
        finally:
            self._begun.set()

    async def _serve(self) -> None:
        self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
        admin = credentials.from_kubeconfig(str(self._kubeconfig))
        async with KubeletClient(admin, user_agent="pod-runner") as client:
            await client.apply(NODES, node_object.node(), manager=MANAGER)
            async with asyncio.TaskGroup() as group:
                group.create_task(node_object.keep_alive(client))
                work = Work(self, client, self._folder, group)
                for kind, seen in work.watched.items():
                    group.create_task(reflect(client, kind, seen))
                group.create_task(work.follow_services())
                group.create_task(work.follow_claims())
                await work.all_listed()
                self._begun.set()


class Work:
    """What follows from the objects that are seen."""

    def __init__(self, node: Node, client: KubeletClient, folder: Path, group: asyncio.TaskGroup) -> None:
        self._node = node
        self._client = client
        self._folder = folder
        self._group = group
        self._network, self._claimed = asyncio.Event(), asyncio.Event()
        self._pods = Seen(self._follow_pods)
        self._services, self._slices = Seen(self._network.set), Seen(self._network.set)
        self._claims = Seen(self._claimed.set)
        self.watched: Mapping[Kind, Seen] = {
            PODS: self._pods,
            SERVICES: self._services,
            ENDPOINT_SLICES: self._slices,
            CLAIMS: self._claims,
        }
        self._lives: dict[str, tuple[PodLife, asyncio.Task[None]]] = {}
        self._scheduled: set[tuple[str, str]] = set()
        self._addresses = addresses.pod_addresses()
        self._ground = Ground(
            client, node_object.NAME, folder, node.logs, node.images, node.names, self._variables
        )

    async def all_listed(self) -> None:
        for seen in self.watched.values():
            await seen.listed.wait()

    async def follow_services(self) -> None:
        """Addresses and names of Services, after every change, until cancelled."""
        forwarder = services.Forwarder()
        try:
            while True:
                await self._network.wait()
                self._network.clear()
                found, slices = list(self._services.objects.values()), list(self._slices.objects.values())
                # Names first: what answers has one.
                self._node.names.update(services.names(found, slices))
                await forwarder.update(found, slices)
        finally:
            forwarder.close()

    async def follow_claims(self) -> None:
        """Volumes for claims, after every change, until cancelled."""
        made: set[str] = set()
        while True:
            await self._claimed.wait()
            self._claimed.clear()
            found = list(self._claims.objects.values())
            await claims.provision(self._client, found, made, self._folder / "claims")

    def _follow_pods(self) -> None:
        pods = {one["metadata"]["uid"]: one for one in self._pods.objects.values()}
        for uid in self._lives.keys() - pods.keys():
            self._lives.pop(uid)[1].cancel()
        for uid, pod in pods.items():
            host = pod["spec"].get("nodeName")
            leaving = pod["metadata"].get("deletionTimestamp")
            if not host and not leaving:
                self._schedule(pod)
            elif host == node_object.NAME and uid not in self._lives:
                life = PodLife(self._ground, pod, next(self._addresses))
                task = self._group.create_task(life.run(), name=f"pod {key(pod)}")
                self._lives[uid] = life, task
            if leaving and uid in self._lives:
                self._lives[uid][0].stop(pod["metadata"].get("deletionGracePeriodSeconds", GRACE))

    def _schedule(self, pod: Object) -> None:
        """Once for every state of the pod that is seen."""
        meta = pod["metadata"]
        if (meta["uid"], meta["resourceVersion"]) in self._scheduled:
            return
        self._scheduled.add((meta["uid"], meta["resourceVersion"]))
        self._group.create_task(self._bind(pod))

    async def _bind(self, pod: Object) -> None:
        try:
            await node_object.schedule(self._client, pod)
        except ApiError as error:
            # Deleted, or bound, meanwhile, or its namespace is being deleted.
            if error.code not in (403, 404, 409):
                raise

    def _variables(self, pod: Object) -> Mapping[str, str]:
        """Of the namespace's Services where the pod wants them, and always of `kubernetes`."""
        namespace = pod["metadata"]["namespace"]
        linked = pod["spec"].get("enableServiceLinks", True)
        found = [
            one
            for place, one in self._services.objects.items()
            if place == ("default", "kubernetes") or (linked and place[0] == namespace)
        ]
        return environment.service_variables(found)
