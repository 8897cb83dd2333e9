"""The command line as users run it."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path


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
        program = Path(sys.executable).with_name("kubefoundry")
        process = await asyncio.create_subprocess_exec(
            program,
            *command.split(),
            *self._where,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return Done(process.returncode or 0, out.decode(), err.decode())
