"""The life of one container of a pod: image, configuration, consecutive runs, probes."""

from __future__ import annotations

import asyncio
import functools
import itertools
import shutil
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kubefoundry_nodes.kubelet import (
    environment,
    memory,
    probes,
    process,
    sandbox,
    status,
    termination,
)
from kubefoundry_nodes.kubelet.composition import Parts, compose, described
from kubefoundry_nodes.kubelet.environment import ConfigError, Facts, Find
from kubefoundry_nodes.kubelet.image import Image
from kubefoundry_nodes.kubelet.process import CannotStart, Process
from kubefoundry_nodes.kubelet.sandbox import Sandbox
from kubefoundry_nodes.kubelet.volumes import Volume
from kubefoundry_sdk._api import quantity
from kubefoundry_sdk._api.kinds import Object

AGAIN: Final = 1.0
"""Seconds between attempts to get an image or a configuration. A kubelet waits 10 s and more, which would slow down
tests."""

BACK_OFF: Final = (5.0, 60.0)
"""First and longest delay of a restart in seconds; delays double. A kubelet uses 10 and 300. The first restart is
immediate, as in a kubelet."""

LEAST_GRACE: Final = 2.0
"""Shortest grace in seconds after a preStop hook, and for a sidecar that waited for its turn (kubelet 1.36:
minimumGracePeriodInSeconds)."""

NEVER_STARTED: Final = "1970-01-01T00:00:00Z"
CANNOT_START: Final = 128
"""Exit code that containerd reports if a command cannot be started."""


@dataclass(slots=True)
class Surroundings:
    """State that the containers of a pod share.

    Attributes:
        pod: The pod as an API object.
        facts: Values of the downward API.
        folder: The folder of the pod.
        logs: The folder of the pod's logs.
        volumes: The volumes by name.
        network: The network namespace.
        images: The images that can be pulled, by name.
        find: Reads a ConfigMap or Secret.
        services: Returns the current variables of Services.
        changed: Called at every change of a state.
        reported: Waits until the last change has been written.
        ending: The pod is being stopped, so no container starts.
    """

    pod: Object
    facts: Facts
    folder: Path
    logs: Path
    volumes: Mapping[str, Volume]
    network: Path
    images: Mapping[str, Image]
    find: Find
    services: Callable[[], Mapping[str, str]]
    changed: Callable[[], None]
    reported: Callable[[], Awaitable[None]]
    ending: bool = False


@dataclass(slots=True)
class Life:
    """The life of a container.

    Attributes:
        around: State that it shares with the other containers.
        spec: The container of the pod's spec.
        init: Whether the next container waits for its end. False for a sidecar.
        state: Its state in the pod's status.
        running: The current run, or None.
    """

    around: Surroundings
    spec: Mapping[str, Any]
    init: bool
    state: status.Container
    running: Process | None = None
    _sandbox: Sandbox | None = None
    _idle: asyncio.Event = field(default_factory=asyncio.Event)
    _begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Run the container until it ends and is not restarted."""
        policy = self.spec.get("restartPolicy") or self.around.pod["spec"]["restartPolicy"]
        for number in itertools.count():
            container = await self._prepare(number)
            if self.around.ending:
                return
            code = await self._run(container, number)
            if self.around.ending or not status.restartable(policy, code, init=self.init):
                return
            await self._back_off(failed=number)

    async def until_started(self) -> None:
        """Wait until the container has started once: it runs, and its startup probe has succeeded."""
        await self._begun.wait()

    async def stop(self, grace: float) -> None:
        """End the current run, and wait until the state reports the end."""
        if self.running:
            await self._end(self.running, grace)
            await self._idle.wait()

    async def _end(self, running: Process, grace: float) -> None:
        """Run the preStop hook, then send SIGTERM, then SIGKILL, all within the grace."""
        hook = (self.spec.get("lifecycle") or {}).get("preStop")
        if hook and grace > 0:
            left = await self._pre_stop(running, hook, grace)
            await running.stop(max(left, LEAST_GRACE))
        else:
            await running.stop(grace)

    async def _pre_stop(self, running: Process, hook: Mapping[str, Any], grace: float) -> float:
        """Wait for the hook or the end of the run, and return the remaining seconds of grace."""
        if "exec" not in hook:
            raise NotImplementedError(f"not supported here: a preStop hook {', '.join(hook)}")
        assert self._sandbox is not None
        clock = asyncio.get_running_loop().time
        deadline = clock() + grace
        tasks = [
            asyncio.create_task(execute_in(running.pid, self._sandbox, list(hook["exec"]["command"]))),
            asyncio.create_task(running.exit_code()),
        ]
        try:
            await asyncio.wait(tasks, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        return deadline - clock()

    async def _prepare(self, number: int) -> Sandbox:
        """Return the sandbox of a run, once the image and all objects of the configuration exist."""
        while True:
            image = await self._image()
            try:
                env = await environment.variables(
                    self.spec, self.around.facts, self.around.find, self.around.services()
                )
                return compose(self._parts(image, env, self._message(number)))
            except ConfigError as error:
                self._wait("CreateContainerConfigError", str(error))
                await asyncio.sleep(AGAIN)

    async def _image(self) -> Image:
        name = self.spec["image"]
        while (image := self.around.images.get(name)) is None:
            if self.spec.get("imagePullPolicy") == "Never":
                text = f'Container image "{name}" is not present with pull policy of Never'
                self._wait("ErrImageNeverPull", text)
            else:
                text = f'failed to pull and unpack image "{name}": failed to resolve image: {name}: not found'
                self._wait("ErrImagePull", text)
                await self.around.reported()
                self._wait("ImagePullBackOff", f'Back-off pulling image "{name}": ErrImagePull: {text}')
            await asyncio.sleep(AGAIN)
        self.state.image_id = image.digest
        return image

    def _message(self, number: int) -> Path:
        """Return the file for the termination message of a run."""
        return self.around.folder / "containers" / str(self.spec["name"]) / f"message-{number}"

    def _parts(self, image: Image, env: Mapping[str, str], message: Path) -> Parts:
        scratch = message.with_name("root")
        scratch.mkdir(parents=True, exist_ok=True)
        message.touch()
        message.chmod(0o666)
        return Parts(
            pod=self.around.pod,
            container=self.spec,
            image=image,
            env=env,
            volumes=self.around.volumes,
            scratch=scratch,
            message=message,
            names=self.around.folder / "names",
            # An init container has no network, because installations must work without one.
            network=None if self.init else self.around.network,
        )

    async def _run(self, container: Sandbox, number: int) -> int:
        """Run the container once, and return its exit code."""
        log = self.around.logs / self.spec["name"] / f"{number}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        self.state.id = f"containerd://{uuid.uuid4().hex}{uuid.uuid4().hex}"
        self.state.restarts = number
        self._idle.clear()
        self._sandbox = container
        try:
            self.running = await process.launch(container, log)
        except CannotStart as error:
            text = f"failed to create containerd task: failed to create provider task: {error}"
            self.state.end(CANNOT_START, "StartError", text, NEVER_STARTED, status.now())
            self._wait("RunContainerError", text)
            await self.around.reported()
            return CANNOT_START
        start_time = status.now()
        self.state.run(start_time)
        self.around.changed()
        code = await self._ended(self.running, container)
        reason = "OOMKilled" if self.running.killed_for_memory else "Error" if code else "Completed"
        policy = self.spec["terminationMessagePolicy"]
        text = termination.message(self._message(number), log, policy, code)
        self.state.end(code, reason, text, start_time, status.now())
        self.state.ready = self.init and code == 0
        self.around.changed()
        self.running = None
        self._idle.set()
        return code

    async def _ended(self, running: Process, container: Sandbox) -> int:
        """Watch probes and memory until the run ends, and return its exit code. If cancelled, kill the run."""
        limit = ((self.spec.get("resources") or {}).get("limits") or {}).get("memory")
        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(self._watch(running, container))]
            if limit is not None:
                watches.append(group.create_task(memory.keep(running, quantity.parse(limit))))
            try:
                code = await running.exit_code()
            except asyncio.CancelledError:
                await running.stop(0)
                raise
            finally:
                for watch in watches:
                    watch.cancel()
        return code

    async def _watch(self, running: Process, container: Sandbox) -> None:
        """Run the probes, and stop the run if one fails."""
        clock = asyncio.get_running_loop().time
        execute = functools.partial(execute_in, running.pid, container)
        prober = probes.Prober(self.spec, self.around.facts.pod_ip, execute, clock())
        failed = await probes.watched(prober, self._started, self._ready)
        probe = self.spec[f"{failed}Probe"]
        grace = probe.get("terminationGracePeriodSeconds")
        if grace is None:
            grace = self.around.pod["spec"]["terminationGracePeriodSeconds"]
        await self._end(running, grace)

    def _started(self) -> None:
        self.state.started = True
        self._begun.set()
        self.around.changed()

    def _ready(self, ready: bool) -> None:
        if not self.init:
            self.state.ready = ready
            self.around.changed()

    async def _back_off(self, failed: int) -> None:
        """Wait after the run of that number has ended."""
        if failed == 0:
            return
        first, most = BACK_OFF
        seconds = min(first * 2 ** (failed - 1), most)
        pod = described(self.around.pod)
        text = f"back-off {seconds:.0f}s restarting failed container={self.spec['name']} pod={pod}"
        self._wait("CrashLoopBackOff", text)
        await asyncio.sleep(seconds)

    def _wait(self, reason: str, message: str) -> None:
        self.state.wait(reason, message)
        self.around.changed()


async def execute_in(pid: int, container: Sandbox, command: list[str]) -> int:
    """Run a command in the container of a process as the container's user, and return its exit code."""
    groups = [f"--setuid={container.uid}", f"--setgid={container.gid or 0}"]
    command_process = await asyncio.create_subprocess_exec(
        *(
            shutil.which("nsenter") or "nsenter",
            f"--target={pid}",
            "--all",
            "--root",
            "--wd",
            *groups,
            "--",
            *command,
        ),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": sandbox.PATH, **container.env},
        start_new_session=True,
    )
    try:
        return await command_process.wait()
    except asyncio.CancelledError:
        await process.killed(command_process)
        raise
