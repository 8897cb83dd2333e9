"""The command line as users run it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from support.waiting import SECONDS


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


class CommandLine:
    """The installed program, in a process of its own as users run it."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._where = ["--kubeconfig", str(kubeconfig), "-n", namespace]

    async def __call__(self, command: str, *arguments: str) -> Done:
        """command: its name, of a group with that of the one in it: `provider list`."""
        process = await self._start(command, *arguments)
        out, err = await process.communicate()
        return Done(process.returncode or 0, out.decode(), err.decode())

    @asynccontextmanager
    async def lines(self, command: str, *arguments: str) -> AsyncIterator[AsyncIterator[str]]:
        """Lines that it prints while it runs; it is stopped at the end of the block."""
        process = await self._start(command, *arguments)
        assert process.stdout is not None
        stdout = process.stdout

        async def read() -> AsyncIterator[str]:
            while line := await asyncio.wait_for(stdout.readline(), SECONDS):
                yield line.decode()

        try:
            yield read()
        finally:
            # not SIGINT, which whoever runs the tests in the background has had ignored
            process.terminate()
            await process.communicate()

    async def _start(self, command: str, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            Path(sys.executable).with_name("kubefoundry"),
            *command.split(),
            *self._where,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
