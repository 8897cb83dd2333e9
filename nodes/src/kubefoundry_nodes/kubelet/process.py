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
    """Why the command could not be started, in a container runtime's words."""


class Process:
    """A container that runs. pid: of its first process, on this machine, as long as it runs. killed_for_memory:
    whether it used more than it may."""

    def __init__(self, waiting: asyncio.subprocess.Process, pid: int) -> None:
        self._waiting = waiting
        self.pid = pid
        self.killed_for_memory = False

    async def exit_code(self) -> int:
        """Once it has ended."""
        return await self._waiting.wait()

    async def stop(self, grace: float) -> None:
        """SIGTERM, and SIGKILL after so many seconds; waits for the end."""
        self._send(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._waiting.wait()
                return
        self._send(sandbox.KILL)
        await self._waiting.wait()

    def kill_for_memory(self) -> None:
        self.killed_for_memory = True
        self._send(sandbox.KILL)

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._waiting.send_signal(number)


async def launch(wanted: Sandbox, log: Path) -> Process:
    """Starts it; what it writes goes to `log`. Raises CannotStart."""
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
        waiting.stdin.write(wanted.written())
        waiting.stdin.close()
        written = await report
        found = {key: value for line in written.splitlines() for key, value in json.loads(line).items()}
        if "error" in found or "pid" not in found:
            await waiting.wait()
            raise CannotStart(found.get("error") or f"see {log}")
        return Process(waiting, found["pid"])
    except asyncio.CancelledError:
        # Its container ends with it.
        await killed(waiting)
        raise


async def killed(running: asyncio.subprocess.Process) -> None:
    """Kills it, where it has not just ended, and waits for its end."""
    with contextlib.suppress(ProcessLookupError):
        running.kill()
    await running.wait()


async def _read_all(descriptor: int) -> bytes:
    """Of a pipe, until all who write to it have closed it."""
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(descriptor, "rb", buffering=0)
    )
    try:
        return await stream.read()
    finally:
        transport.close()
