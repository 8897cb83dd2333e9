"""Start Python programs by forking a server that has loaded their libraries."""

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
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from kubefoundry_local.child_processes import Process, execute

SERVER: Final = Path(__file__).with_name("server.py")
FAULTY: Final = Path(__file__).parents[1]
"""The folder of the tests' own programs: our programs with a fault."""
TOOL_MODULES: Final = (
    *("argparse", "csv", "dataclasses", "email.parser", "filecmp", "importlib.metadata", "json", "platform"),
    *("packaging.requirements", "packaging.tags", "packaging.utils", "selectors", "shutil", "subprocess"),
    *("tempfile", "traceback", "urllib.parse", "yaml", "zipfile"),
)
"""The modules that the LlamaStack tool imports besides its own."""


class Forked:
    """A forked process, with the methods of `subprocess.Popen`."""

    def __init__(self, status: socket.socket) -> None:
        self._status = status
        self._reading = threading.Lock()
        self.returncode: int | None = None
        self.pid = self._read()

    def _read(self) -> int:
        """Read a number from the server. Raise OSError if the server has ended."""
        line = b""
        while not line.endswith(b"\n"):
            if not (byte := self._status.recv(1)):
                raise OSError("the server of the preloaded processes has ended")
            line += byte
        return int(line)

    def poll(self) -> int | None:
        """Return the exit code, or None if the process is running."""
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self._end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, and return the exit code. Raise subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a preloaded process", timeout or 0)
            self._end()
        assert self.returncode is not None
        return self.returncode

    def _end(self) -> None:
        """Read the exit code once, even if several threads wait: the socket stays readable after the end."""
        with self._reading:
            if self.returncode is None:
                self.returncode = self._read()

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            # It may end between the two calls, as for `subprocess.Popen.send_signal`.
            with suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def fork(
    command: Sequence[str], environment: Mapping[str, str], files: Sequence[int], folder: Path | None = None
) -> Forked:
    """Start a command for which `runs` is true. `files` are its stdin, stdout and stderr."""
    argv = list(command[1:] if command[0] == sys.executable else command)
    return _fork(_server(sys.executable), argv, environment, files, folder)


def run_folder(
    python: str, folder: Path, arguments: Sequence[str], environment: Mapping[str, str]
) -> tuple[int, str]:
    """Run an application with its own libraries, as `python FOLDER`, and return exit code and output."""
    read, write = os.pipe()
    try:
        with Path(os.devnull).open("rb") as nothing:
            server = _server(python, folder, *TOOL_MODULES)
            forked = _fork(server, [str(folder), *arguments], environment, [nothing.fileno(), write, write])
    finally:
        os.close(write)
    try:
        with open(read, encoding="utf-8", errors="replace") as output:  # noqa: PTH123 - of a pipe
            text = output.read()
        return forked.wait(), text
    except BaseException:
        # A timeout of the test must not leave the process behind. `subprocess.run` does the same.
        forked.kill()
        raise


def _fork(
    server: socket.socket,
    argv: Sequence[str],
    environment: Mapping[str, str],
    files: Sequence[int],
    folder: Path | None = None,
) -> Forked:
    request = {"argv": list(argv), "environment": dict(environment), "folder": str(folder or Path.cwd())}
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(server, [json.dumps(request).encode()], [*files, theirs.fileno()])
    return Forked(ours)


def runs(command: Sequence[str]) -> bool:
    """Check whether the command is a Python program of ours.

    It is a console script of this environment, or the interpreter with one of our modules or of the tests' programs.
    Other programs may not work with our preloaded libraries.
    """
    program = Path(command[0])
    if str(program) == sys.executable:
        module = command[1] == "-m" and command[2].startswith("kubefoundry_")
        return module or Path(command[1]).parent == FAULTY
    if program.parent != Path(sys.executable).parent or not program.name.startswith("kubefoundry"):
        return False
    with program.open("rb") as file:
        return file.readline().strip() == f"#!{sys.executable}".encode()


def launch(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
    """Start a command as `child_processes.execute` does, but faster if it is a program of ours."""
    # Python reads PYTHONPATH, PYTHONHASHSEED and the like only at its start, and the server started without them.
    if not runs(command) or any(name.startswith("PYTHON") for name in environment):
        return execute(command, environment, log)
    with log.open("ab") as output, Path(os.devnull).open("rb") as nothing:
        return fork(command, environment, [nothing.fileno(), output.fileno(), output.fileno()])


@cache
def _server(python: str, application: Path | None = None, *libraries: str) -> socket.socket:
    """Start a server, and return the connection to it.

    The server ends when the connection closes. It requests no signal at our end, because the kernel sends that signal
    when the starting thread ends, which may be a thread of an event loop.

    Args:
        python: The interpreter.
        application: The folder of the libraries; None for the environment of the interpreter.
        libraries: Modules to load instead of our own.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.Popen(
            [python, str(SERVER), str(theirs.fileno()), *libraries],
            # Only the variables of a container. Children get their variables with each request.
            env={"PATH": os.environ["PATH"], **({"PYTHONPATH": str(application)} if application else {})},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    return ours
