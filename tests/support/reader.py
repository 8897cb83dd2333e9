"""A simulated reader of messages, who runs the command of a message literally."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kubefoundry_local.control_plane import ControlPlane, run_kubectl
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine, Done
from support.message_commands import command_in

NOWHERE: Path = Path(os.devnull)
"""A kubeconfig without a cluster."""


@dataclass
class Reader:
    """A reader of messages.

    Attributes:
        plane: The control plane.
        api: A client with the rights of an administrator.
        namespace: The namespace of the reader's models.
        folder: A folder for files.
        kubeconfig: The reader's kubeconfig. The command line gets it as an option, so its messages must name it.
            For a condition or a warning of `kubectl apply`, the reader has it in KUBECONFIG.
        fill: Values for words in capitals.
    """

    plane: ControlPlane
    api: Client
    namespace: str
    folder: Path
    kubeconfig: Path
    fill: Mapping[str, str] = field(default_factory=dict)

    @property
    def kubefoundry(self) -> CommandLine:
        """Return the command line with cluster and namespace as options."""
        return CommandLine(self.kubeconfig, self.namespace)

    async def says(self, command: str, *arguments: str) -> str:
        """Return the output of a command."""
        done = await self.kubefoundry(command, *arguments)
        return done.out + done.err

    async def follow(self, message: str, key: str, fill: Mapping[str, str] | None = None) -> Done:
        """Run the command that the message has for this key of `SITES`, and answer its question with yes.

        `fill` has values for words in capitals, which the reader has to replace.
        """
        words = [(fill or {}).get(word, word) for word in command_in(message, key)]
        return await self.run(words, NOWHERE if key.startswith("cli/") else self.kubeconfig)

    async def run(self, words: list[str], kubeconfig: Path) -> Done:
        """Run a command with this KUBECONFIG."""
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("KUBECONFIG", str(kubeconfig))
            if words[0] == "kubectl":
                return await asyncio.to_thread(_run, [*self.plane.kubectl_command, *words[1:]])
            done = await CommandLine.offline(*words[1:])
            if "add --yes" in done.err:
                return await CommandLine.offline(*words[1:], "--yes")
            return done


def _run(command: list[str]) -> Done:
    done = run_kubectl(command)
    return Done(done.returncode, done.stdout, done.stderr)
