"""Run the command line as users do."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from support.preloaded.client import fork
from support.waiting import SECONDS


@dataclass(frozen=True)
class Done:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


class Running:
    """A running command, with its output."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._loop = asyncio.get_running_loop()
        self.stdout, self.stderr = asyncio.StreamReader(), asyncio.StreamReader()
        self._pipes = [os.pipe(), os.pipe()]
        written = [write for _, write in self._pipes]
        try:
            with Path(os.devnull).open("rb") as nothing:
                command = [str(Path(sys.executable).with_name("kubefoundry")), *arguments]
                self.process = fork(command, os.environ, [nothing.fileno(), *written])
        finally:
            for write in written:
                os.close(write)

    async def connect(self) -> None:
        """Connect the output of the process with the readers."""
        for (read, _), reader in zip(self._pipes, (self.stdout, self.stderr), strict=True):
            protocol = functools.partial(asyncio.StreamReaderProtocol, reader)
            await self._loop.connect_read_pipe(protocol, os.fdopen(read, "rb"))

    async def communicate(self) -> tuple[bytes, bytes]:
        """Wait for the end of the process, and return its stdout and stderr."""
        out, err = await asyncio.gather(self.stdout.read(), self.stderr.read())
        await asyncio.to_thread(self.process.wait)
        return out, err


class CommandLine:
    """The installed program in a process of its own, with preloaded libraries."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._where = ["--kubeconfig", str(kubeconfig), "-n", namespace]

    async def __call__(self, command: str, *arguments: str) -> Done:
        """Run a command to its end. The command of a group has two words: `provider list`."""
        running = await self._start(command, *arguments)
        out, err = await running.communicate()
        return Done(running.process.returncode or 0, out.decode(), err.decode())

    @staticmethod
    async def offline(*arguments: str) -> Done:
        """Run a command that needs no cluster."""
        running = Running(arguments)
        await running.connect()
        out, err = await running.communicate()
        return Done(running.process.returncode or 0, out.decode(), err.decode())

    @asynccontextmanager
    async def lines(self, command: str, *arguments: str) -> AsyncIterator[AsyncIterator[str]]:
        """Run a command, and yield an iterator of its lines. The command is stopped at the end of the block."""
        running = await self._start(command, *arguments)

        async def read() -> AsyncIterator[str]:
            while line := await asyncio.wait_for(running.stdout.readline(), SECONDS):
                yield line.decode()

        try:
            yield read()
        finally:
            # Not SIGINT, because shells let background jobs ignore it.
            running.process.terminate()
            await running.communicate()

    async def _start(self, command: str, *arguments: str) -> Running:
        running = Running([*command.split(), *self._where, *arguments])
        await running.connect()
        return running
