"""One run of a container."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from pathlib import Path

from kubefoundry_nodes.kubelet import sandbox
from kubefoundry_nodes.kubelet.sandbox import Sandbox


class CannotStart(Exception):
    """Raised if a command cannot be started, with a container runtime's message."""


class Process:
    """A running container.

    Attributes:
        pid: The number of its first process on this machine while it runs.
        killed_for_memory: Whether it was killed because it exceeded its memory limit.
    """

    def __init__(self, waiting: asyncio.subprocess.Process, pid: int) -> None:
        self._waiting = waiting
        self.pid = pid
        self.killed_for_memory = False

    async def exit_code(self) -> int:
        """Wait for the end, and return the exit code."""
        return await self._waiting.wait()

    async def stop(self, grace: float) -> None:
        """Send SIGTERM, and SIGKILL after `grace` seconds, and wait for the end."""
        self._send(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._waiting.wait()
                return
        self._send(sandbox.KILL)
        await self._waiting.wait()

    def kill_for_memory(self) -> None:
        """Kill the container as the OOM killer does."""
        self.killed_for_memory = True
        self._send(sandbox.KILL)

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._waiting.send_signal(number)


async def launch(container: Sandbox, log: Path) -> Process:
    """Start a container whose output is appended to `log`. Raises CannotStart."""
    reading, writing = os.pipe()
    report = asyncio.create_task(_read_all(reading))
    try:
        with log.open("ab") as output:
            waiting = await asyncio.create_subprocess_exec(
                *sandbox.command(writing),
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=sandbox.environment(),
                pass_fds=[writing],
                start_new_session=True,
            )
    finally:
        os.close(writing)
    try:
        assert waiting.stdin is not None
        waiting.stdin.write(container.written())
        waiting.stdin.close()
        lines = (await report).splitlines()
        result = {key: value for line in lines for key, value in json.loads(line).items()}
        if "error" in result or "pid" not in result:
            await waiting.wait()
            raise CannotStart(result.get("error") or f"see {log}")
        return Process(waiting, result["pid"])
    except asyncio.CancelledError:
        # The container ends with the waiting process.
        await killed(waiting)
        raise


async def killed(running: asyncio.subprocess.Process) -> None:
    """Kill a process that may have ended, and wait for its end."""
    with contextlib.suppress(ProcessLookupError):
        running.kill()
    await running.wait()


async def _read_all(descriptor: int) -> bytes:
    """Read a pipe until all its writers have closed it."""
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(descriptor, "rb", buffering=0)
    )
    try:
        return await stream.read()
    finally:
        transport.close()
