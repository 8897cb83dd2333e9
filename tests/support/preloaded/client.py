"""Processes of Python programs without the loading of their libraries: forked by a server that has loaded them."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from kubefoundry_local.child_processes import Process, execute

SERVER: Final = Path(__file__).with_name("server.py")
FAULTY: Final = Path(__file__).parents[1]
"""The folder of the tests' own programs: ours with a fault."""
BROUGHT: Final = (
    *("argparse", "csv", "dataclasses", "email.parser", "filecmp", "importlib.metadata", "json", "platform"),
    *("packaging.requirements", "packaging.tags", "packaging.utils", "selectors", "shutil", "subprocess"),
    *("tempfile", "traceback", "urllib.parse", "yaml", "zipfile"),
)
"""What the LlamaStack tool imports besides its own modules."""


class Forked:
    """One of them, asked as `subprocess.Popen` is."""

    def __init__(self, status: socket.socket) -> None:
        self._status = status
        self._reading = threading.Lock()
        self.returncode: int | None = None
        self.pid = self._read()

    def _read(self) -> int:
        """Raises OSError if the server has gone."""
        line = b""
        while not line.endswith(b"\n"):
            if not (byte := self._status.recv(1)):
                raise OSError("the server of the preloaded processes has ended")
            line += byte
        return int(line)

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self._end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a preloaded process", timeout or 0)
            self._end()
        assert self.returncode is not None
        return self.returncode

    def _end(self) -> None:
        """The socket stays readable once it has ended: several threads may wait."""
        with self._reading:
            if self.returncode is None:
                self.returncode = self._read()

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork(
    command: Sequence[str], environment: Mapping[str, str], files: Sequence[int], folder: Path | None = None
) -> Forked:
    """Runs a command of which `runs` is true. files: its stdin, stdout and stderr."""
    argv = list(command[1:] if command[0] == sys.executable else command)
    return _fork(_server(sys.executable), argv, environment, files, folder)


def run_folder(
    python: str, folder: Path, arguments: Sequence[str], environment: Mapping[str, str]
) -> tuple[int, str]:
    """Runs an application that brings its libraries, as `python FOLDER`; returns its exit code and all its output."""
    read, write = os.pipe()
    try:
        with Path(os.devnull).open("rb") as nothing:
            server = _server(python, folder, *BROUGHT)
            forked = _fork(server, [str(folder), *arguments], environment, [nothing.fileno(), write, write])
    finally:
        os.close(write)
    try:
        with open(read, encoding="utf-8", errors="replace") as said:  # noqa: PTH123 - of a pipe
            text = said.read()
        return forked.wait(), text
    except BaseException:
        # at the end of the test's time, as `subprocess.run` does it
        forked.kill()
        raise


def _fork(
    server: socket.socket,
    argv: Sequence[str],
    environment: Mapping[str, str],
    files: Sequence[int],
    folder: Path | None = None,
) -> Forked:
    asked = {"argv": list(argv), "environment": dict(environment), "folder": str(folder or Path.cwd())}
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(server, [json.dumps(asked).encode()], [*files, theirs.fileno()])
    return Forked(ours)


def runs(command: Sequence[str]) -> bool:
    """Whether it is a Python program of ours: a console script of this environment, or the interpreter with a module
    or with a program of the tests. What others wrote may not go well with our libraries."""
    program = Path(command[0])
    if str(program) == sys.executable:
        module = command[1] == "-m" and command[2].startswith("kubefoundry_")
        return module or Path(command[1]).parent == FAULTY
    if program.parent != Path(sys.executable).parent or not program.name.startswith("kubefoundry"):
        return False
    with program.open("rb") as file:
        return file.readline().strip() == f"#!{sys.executable}".encode()


def launch(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
    """As `child_processes.execute`, of which it is the quicker form."""
    # Python reads PYTHONPATH, PYTHONHASHSEED and the like only when it starts, and the server was started without.
    if not runs(command) or any(name.startswith("PYTHON") for name in environment):
        return execute(command, environment, log)
    with log.open("ab") as output, Path(os.devnull).open("rb") as nothing:
        return fork(command, environment, [nothing.fileno(), output.fileno(), output.fileno()])


@cache
def _server(python: str, application: Path | None = None, *libraries: str) -> socket.socket:
    """A connection to one that ends with this process. application: where it finds the libraries.

    It ends when the connection does, and asks for no signal at our end: the kernel sends that when the thread that
    started it ends, which may be one of an event loop's.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.Popen(
            [python, str(SERVER), str(theirs.fileno()), *libraries],
            # what a container has, and no more: children get their variables with each request
            env={"PATH": os.environ["PATH"], **({"PYTHONPATH": str(application)} if application else {})},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    return ours
