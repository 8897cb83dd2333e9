"""Child processes that do not outlive this one, however it ends (on Linux; elsewhere they may)."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

PR_SET_PDEATHSIG: Final = 1
"""prctl(2): the signal that a process gets when the thread that created it ends."""


class Process(Protocol):
    """What a child can be asked: as `subprocess.Popen` has it."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


Launch = Callable[[Sequence[str], Mapping[str, str], Path], Process]
"""Starts a command with exactly this environment; what it prints is appended to the file."""


def execute(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
    """A new process of the program."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=ends_with_us(),
        )


_launch: Launch = execute


def launch_with(other: Launch) -> None:
    """Has `launch` call this from now on: tests start some hundred processes, and have their libraries preloaded."""
    global _launch
    _launch = other


def launch(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
    """Starts a child in a session of its own: Ctrl-C in a terminal is for us, who stop it."""
    return _launch(command, environment, log)


def ends_with_us() -> Callable[[], None] | None:
    """The `preexec_fn` of such a child; for the main thread, because its end is the process's."""
    if sys.platform != "linux":
        return None
    # Looked up here: between fork and exec only code that is already loaded is safe to use.
    prctl, us = ctypes.CDLL(None).prctl, os.getpid()

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != us:
            os.kill(os.getpid(), signal.SIGTERM)

    return ask
