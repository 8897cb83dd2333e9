"""The life of a pod on the node, from its binding to the removal of its object."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kubefoundry_nodes.kubelet import addresses, status, syscalls, volumes
from kubefoundry_nodes.kubelet.container import AGAIN, LEAST_GRACE, Life, Surroundings
from kubefoundry_nodes.kubelet.environment import Facts
from kubefoundry_nodes.kubelet.image import Image
from kubefoundry_nodes.kubelet.kubelet_client import KubeletClient
from kubefoundry_nodes.kubelet.names import Names
from kubefoundry_sdk._api.kinds import PODS, Object

GRACE: Final = 30


@dataclass(frozen=True, slots=True)
class Ground:
    """State that all pods of the node share. `services` returns the variables of Services for a pod."""

    client: KubeletClient
    node: str
    folder: Path
    logs: Path
    images: Mapping[str, Image]
    names: Names
    services: Callable[[Object], Mapping[str, str]]


@dataclass(slots=True)
class PodLife:
    """The life of a pod.

    Call `run` in a task, and `stop` if the pod has to end. Cancel the task if the object is gone.
    """

    ground: Ground
    pod: Object
    address: str
    init: list[status.Container] = field(default_factory=list)
    main: list[status.Container] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    around: Surroundings | None = None
    _object: Object = field(init=False)
    _since: str = field(default_factory=status.now)
    _connected: bool = False
    _changes: int = 0
    _written: int = 0
    _dirty: asyncio.Event = field(default_factory=asyncio.Event)
    _wrote: asyncio.Event = field(default_factory=asyncio.Event)
    _end: asyncio.Event = field(default_factory=asyncio.Event)
    _grace: float = GRACE

    def __post_init__(self) -> None:
        self._object = self.pod
        spec = self.pod["spec"]
        first = "PodInitializing" if spec.get("initContainers") else "ContainerCreating"
        for states, containers in (
            (self.init, spec.get("initContainers") or ()),
            (self.main, spec["containers"]),
        ):
            states += [
                status.Container(
                    container["name"],
                    container["image"],
                    {"waiting": {"reason": first}},
                    sidecar=states is self.init and is_sidecar(container),
                )
                for container in containers
            ]

    @property
    def folder(self) -> Path:
        """The folder of the pod's files."""
        return self.ground.folder / "pods" / str(self.pod["metadata"]["uid"])

    def stop(self, grace: float) -> None:
        """Stop the containers within `grace` seconds, and then remove the object."""
        self._grace = grace
        self._end.set()

    async def run(self) -> None:
        """Run until the object is removed. If cancelled, kill the containers and leave the object."""
        try:
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(self._write())
                living = group.create_task(self._live())
                self._changed()
                await self._end.wait()
                await self._stop_containers(self._grace)
                # Containers that still wait for their start must not start.
                living.cancel()
                await asyncio.wait({living})
                self._changed()
                await self._reported()
                writing.cancel()
                await self.ground.client.remove(self.pod)
        finally:
            self.ground.names.remove(self.folder / "names")
            await cleared(self.folder)

    async def _live(self) -> None:
        """Run init containers in their order, then the others together, and at last stop the sidecars."""
        self.folder.mkdir(parents=True)
        network = self.folder / "network"
        network.touch()
        await addresses.connect(network, self.address)
        meta = self.pod["metadata"]
        line = f"{self.address} {meta['name']}"
        self.ground.names.add(self.folder / "names", meta["namespace"], line)
        facts = Facts(self.pod, self.ground.node, self.address, addresses.NODE)
        claims = self.ground.folder / "claims"
        maker = volumes.Maker(self.ground.client, facts, self.folder / "volumes", claims)
        self._connected = True
        self._changed()
        pod_volumes = await volumes.wait_until_made(maker, AGAIN)
        self.around = self._surroundings(facts, pod_volumes, network)
        async with asyncio.TaskGroup() as group:
            sidecars: list[asyncio.Task[None]] = []
            if await self._initialize(self.around, group, sidecars):
                await self._run_main(self.around)
            await self._stop_containers(self.pod["spec"]["terminationGracePeriodSeconds"])
            for sidecar in sidecars:
                # A sidecar that waits for its restart must not restart.
                sidecar.cancel()

    async def _initialize(
        self, around: Surroundings, group: asyncio.TaskGroup, sidecars: list[asyncio.Task[None]]
    ) -> bool:
        """Run init containers until they end, and sidecars until they have started. Return whether all succeeded."""
        for state, container in zip(self.init, self.pod["spec"].get("initContainers") or (), strict=True):
            life = Life(around, container, not state.sidecar, state)
            self.lives.append(life)
            if state.sidecar:
                sidecars.append(group.create_task(life.run()))
                await life.until_started()
                continue
            await life.run()
            if not state.ready:
                return False
        return True

    async def _run_main(self, around: Surroundings) -> None:
        lives = [
            Life(around, container, False, state)
            for state, container in zip(self.main, self.pod["spec"]["containers"], strict=True)
        ]
        self.lives += lives
        async with asyncio.TaskGroup() as group:
            for life in lives:
                group.create_task(life.run())

    def _surroundings(
        self, facts: Facts, pod_volumes: Mapping[str, volumes.Volume], network: Path
    ) -> Surroundings:
        meta = self.pod["metadata"]

        async def find(kind: str, name: str) -> Object | None:
            return await self.ground.client.content(kind, name, meta["namespace"])

        return Surroundings(
            pod=self.pod,
            facts=facts,
            folder=self.folder,
            logs=self.ground.logs / f"{meta['namespace']}_{meta['name']}_{meta['uid']}",
            volumes=pod_volumes,
            network=network,
            images=self.ground.images,
            find=find,
            services=lambda: self.ground.services(self.pod),
            changed=self._changed,
            reported=self._reported,
        )

    async def _stop_containers(self, grace: float) -> None:
        """Stop all containers at once, and then the sidecars one by one, the last one first."""
        if self.around:
            self.around.ending = True
        clock = asyncio.get_running_loop().time
        deadline = clock() + grace
        await asyncio.gather(*(life.stop(grace) for life in self.lives if not life.state.sidecar))
        for life in reversed(self.lives):
            if life.state.sidecar:
                await life.stop(max(deadline - clock(), min(grace, LEAST_GRACE)))

    def _changed(self) -> None:
        self._changes += 1
        self._dirty.set()

    async def _reported(self) -> None:
        """Wait until all changes so far are written."""
        changes = self._changes
        while self._written < changes:
            self._wrote.clear()
            await self._wrote.wait()

    async def _write(self) -> None:
        """Write the status at every change; simultaneous changes become one write."""
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            changes = self._changes
            exists = await self._put()
            self._written = changes if exists else sys.maxsize
            self._wrote.set()

    async def _put(self) -> bool:
        """Write the status, and return whether the pod still exists. The pod is read only after a conflict."""
        meta = self.pod["metadata"]
        while True:
            new_status = self._status(self._object["status"])
            if new_status == self._object["status"]:
                return True
            if written := await self.ground.client.put_status(PODS, self._object, new_status):
                self._object = written
                return True
            live = await self.ground.client.find(PODS, meta["name"], meta["namespace"])
            if live is None or live["metadata"]["uid"] != meta["uid"]:
                return False
            self._object = live

    def _status(self, live: Object) -> Object:
        """Return the new status. Fields of `live`, the current status, that a kubelet does not write stay."""
        ending = self._end.is_set()
        phase = status.phase(self.pod["spec"]["restartPolicy"], self.init, self.main, ending=ending)
        share = status.MESSAGES // (len(self.init) + len(self.main))
        ours = status.conditions(phase, self.init, self.main, sandbox=self._connected)
        result = {
            **live,
            "phase": phase,
            "conditions": status.merged_conditions(live.get("conditions") or (), ours, status.now()),
            "hostIP": addresses.NODE,
            "hostIPs": [{"ip": addresses.NODE}],
            "startTime": self._since,
            "containerStatuses": status.container_statuses(self.main, share),
        }
        if self.init:
            result["initContainerStatuses"] = status.container_statuses(self.init, share)
        if self._connected:
            result |= {"podIP": self.address, "podIPs": [{"ip": self.address}]}
        return result


def is_sidecar(container: Mapping[str, Any]) -> bool:
    """Check whether an init container is restartable."""
    return container.get("restartPolicy") == "Always"


async def cleared(folder: Path) -> None:
    """Clear a folder even if cancelled meanwhile. Otherwise the pending work of a thread would be dropped."""
    clearing = asyncio.get_running_loop().run_in_executor(None, clear, folder)
    while not clearing.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(clearing)


def clear(folder: Path) -> None:
    """Remove the files and mounts of a pod. The mounts of its containers ended with the containers."""
    for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
        place = line.split()[1].encode().decode("unicode_escape")
        if Path(place).is_relative_to(folder):
            syscalls.unmount(place)
    if folder.exists():
        shutil.rmtree(folder)
