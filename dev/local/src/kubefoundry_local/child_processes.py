"""Child processes that end with this process on Linux, even if it is killed. Elsewhere they may outlive it."""

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
"""Option of prctl(2): the signal that a process gets when its parent thread ends."""


class Process(Protocol):
    """The part of `subprocess.Popen` that a child has."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


Launch = Callable[[Sequence[str], Mapping[str, str], Path], Process]
"""Starts a command with exactly this environment, and appends its output to a file."""


def execute(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
    """Execute a command in a new process."""
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
    """Replace the function that `launch` calls. Tests start hundreds of processes with preloaded libraries."""
    global _launch
    _launch = other


def launch(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
    """Start a child in its own session. Ctrl-C in a terminal reaches only this process, which stops its children."""
    return _launch(command, environment, log)


def ends_with_us() -> Callable[[], None] | None:
    """Return the `preexec_fn` of a child. Call it in the main thread, whose end is the end of the process."""
    if sys.platform != "linux":
        return None
    # Looked up here, because only loaded code is safe between fork and exec.
    prctl, us = ctypes.CDLL(None).prctl, os.getpid()

    def request_signal() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != us:
            os.kill(os.getpid(), signal.SIGTERM)

    return request_signal
