"""The node: run the pods of a cluster as processes of this machine.

Its event loop has a thread of its own, so that tests may block. Linux ends the containers with that thread
(PR_SET_PDEATHSIG), so no container outlives the runner.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from kubefoundry_nodes.kubelet import (
    addresses,
    claims,
    environment,
    log_server,
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
from kubefoundry_sdk._api.kinds import PODS, Kind, Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._cluster.reflector import reflect

Key = tuple[str, str]


@dataclass(slots=True)
class Seen:
    """The objects of a kind, updated by a watch. `changed` is called after every change."""

    changed: Callable[[], None]
    objects: dict[Key, Object] = field(default_factory=dict)
    listed: asyncio.Event = field(default_factory=asyncio.Event)

    def replace(self, objects: Iterator[Object], resource_version: str, *, rewound: bool) -> None:
        self.objects = {key(obj): obj for obj in objects}
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
    """A node.

    Attributes:
        images: The images that can be pulled, by name; they may change at any time.
        logs: The folder of logs: a folder for each pod, in it a folder for each container with a file for each run.
        names: The hosts files of Services.
    """

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
        """Add an image that can be pulled."""
        self.images[image.name] = image

    def remove_image(self, name: str) -> None:
        """Remove an image, which cannot be pulled any more."""
        del self.images[name]

    def log(self, namespace: str, pod: str, container: str, run: int = -1) -> str:
        """Return the output of a run, by default of the last one, of the newest pod of that name."""
        return log_server.files_of(self.logs, namespace, pod, container)[run].read_text(errors="replace")

    def start(self) -> None:
        """Start the node, and wait until it is registered. Raises RuntimeError if the runner has ended."""
        self._thread.start()
        self._begun.wait()
        self.check()

    def check(self) -> None:
        """Raise RuntimeError if the runner has failed."""
        if self._failure:
            raise RuntimeError("the pod runner failed") from self._failure

    def stop(self) -> None:
        """Kill all containers. Raises RuntimeError if the runner has failed before."""
        if self._loop and self._main:
            # The loop may have ended. Then `check` reports the reason.
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
                group.create_task(work.serve_logs(self._begun.set))


class Work:
    """Reacts to changes of pods, Services and claims."""

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
        """Wait for the first list of each kind."""
        for seen in self.watched.values():
            await seen.listed.wait()

    async def serve_logs(self, ready: Callable[[], None]) -> None:
        """Serve the logs of pods to the API server until cancelled. Calls `ready` once they are served."""
        async with log_server.serving(self._node.logs, lambda *pod: pod in self._pods.objects):
            ready()
            await asyncio.Event().wait()

    async def follow_services(self) -> None:
        """Update addresses and names of Services after every change, until cancelled."""
        server = urlsplit(self._client.server)
        forwarder = services.Forwarder((server.hostname or "", server.port or 443))
        try:
            while True:
                await self._network.wait()
                self._network.clear()
                listed, slices = list(self._services.objects.values()), list(self._slices.objects.values())
                # Names first, so that an address that answers has a name.
                self._node.names.update(services.names(listed, slices))
                await forwarder.update(listed, slices)
        finally:
            forwarder.close()

    async def follow_claims(self) -> None:
        """Update volumes for claims after every change, until cancelled."""
        volumes: set[str] = set()
        while True:
            await self._claimed.wait()
            self._claimed.clear()
            listed = list(self._claims.objects.values())
            await claims.provision(self._client, listed, volumes, self._folder / "claims")

    def _follow_pods(self) -> None:
        pods = {pod["metadata"]["uid"]: pod for pod in self._pods.objects.values()}
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
        """Schedule a pod once for every version of its object."""
        meta = pod["metadata"]
        if (meta["uid"], meta["resourceVersion"]) in self._scheduled:
            return
        self._scheduled.add((meta["uid"], meta["resourceVersion"]))
        self._group.create_task(self._bind(pod))

    async def _bind(self, pod: Object) -> None:
        try:
            await node_object.schedule(self._client, pod)
        except ApiError as error:
            # The pod was deleted or bound meanwhile, or its namespace is being deleted.
            if error.code not in (403, 404, 409):
                raise

    def _variables(self, pod: Object) -> Mapping[str, str]:
        """Return the variables of `kubernetes`, and of the namespace's Services if the pod enables service links."""
        namespace = pod["metadata"]["namespace"]
        linked = pod["spec"].get("enableServiceLinks", True)
        visible = [
            service
            for place, service in self._services.objects.items()
            if place == services.API_SERVER or (linked and place[0] == namespace)
        ]
        return environment.service_variables(visible)
