"""Run Python programs in forks of this process, which has loaded their modules.

The arguments are the number of a socket, and libraries to load instead of our own. Each message on the socket is a
request (`client.py`). Most of the CPU time of a start is the loading of modules, and a run of all tests starts
hundreds of processes. Each fork has the state of a process that the console script starts, with its own arguments,
environment, session, working directory, files and signals. This process loads our programs, and only its forks run
them.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

LIBRARIES: Final = (
    *("aiohttp.web", "celpy", "click", "cryptography.x509", "prometheus_client", "pydantic", "yaml"),
    *("cryptography.hazmat.primitives.asymmetric.ec", "kubernetes.config", "http.server", "urllib.request"),
)
OURS: Final = "kubefoundry"
"""Prefix of the names of our programs."""

NOT_LOADED: Final = ("kubefoundry-conformance", "kubefoundry-demo")
"""The conformance kit loads hypothesis, which has hooks for each garbage collection. The demo has to handle an
interrupt before it loads its modules."""

REQUEST: Final = 1 << 20
"""Bytes of a request, at most."""

PR_SET_PDEATHSIG: Final = 1

INTERRUPT: Final = signal.getsignal(signal.SIGINT)
"""The inherited handler of SIGINT. Shells let background jobs ignore it."""


@dataclass(frozen=True)
class Request:
    """A program to run.

    Attributes:
        argv: Its arguments.
        environment: Its environment.
        folder: Its working directory.
        files: Its stdin, stdout and stderr.
        status: A socket for the process id and, at the end, the exit code.
    """

    argv: list[str]
    environment: dict[str, str]
    folder: str
    files: list[int]
    status: socket.socket


def load(libraries: list[str]) -> None:
    """Load these libraries, or by default all programs of ours."""
    for name in libraries or LIBRARIES:
        import_module(name)
    if libraries:
        return
    for program in entry_points(group="console_scripts"):
        if program.name.startswith(OURS) and program.name not in NOT_LOADED:
            with contextlib.suppress(Exception):  # the program fails when it runs
                import_module(program.module)


def serve(requests: socket.socket) -> Request | None:
    """Answer requests until the other end closes, then return None. In each fork, return the request to run."""
    children: dict[int, socket.socket] = {}
    woken, wake = socket.socketpair()
    for end in (woken, wake):
        end.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([requests, woken], [], [])
        if woken in ready:
            woken.recv(4096)
            _report(children)
        if requests in ready:
            raw, files, _, _ = socket.recv_fds(requests, REQUEST, 4)
            if not raw:
                return None
            fields: dict[str, Any] = json.loads(raw)
            *standard, status = files
            request = Request(**fields, files=standard, status=socket.socket(fileno=status))
            if (pid := os.fork()) == 0:
                signal.set_wakeup_fd(-1)
                return request
            for file in standard:
                os.close(file)
            children[pid] = request.status
            request.status.send(f"{pid}\n".encode())


def _report(children: dict[int, socket.socket]) -> None:
    """Send the exit code of each ended child to its client."""
    while children:
        pid, code = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        # OSError: the client has closed the socket.
        with children.pop(pid) as status, contextlib.suppress(OSError):
            status.send(f"{os.waitstatus_to_exitcode(code)}\n".encode())


def become(request: Request, server: int) -> None:
    """Give this fork the state of a new process of the program."""
    # This comes first, so that no fork outlives the tests.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != server:
        sys.exit(1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, INTERRUPT)
    os.setsid()
    os.chdir(request.folder)
    for number, file in enumerate(request.files):
        os.dup2(file, number)
    request.status.detach()
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(request.environment)
    if not {"LC_ALL", "LC_CTYPE", "LANG"} & {*request.environment}:
        os.environ["LC_CTYPE"] = "C.UTF-8"  # as Python itself does (PEP 538)
    sys.argv[:] = request.argv
    sys.stdin = _text(0, "surrogateescape")
    sys.stdout = _text(1, "surrogateescape")
    sys.stderr = _text(2, "backslashreplace")


def _text(file: int, errors: str) -> io.TextIOWrapper:
    """Open a standard file as Python itself does in the locale C.UTF-8."""
    how = "r" if file == 0 else "w"
    raw = io.FileIO(file, how, closefd=False)
    buffer = io.BufferedReader(raw) if file == 0 else io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, encoding="utf-8", errors=errors, line_buffering=file == 2 or raw.isatty())


def main() -> None:
    load(sys.argv[2:])
    # The garbage collector skips the loaded modules from now on, so the forks share their memory.
    gc.collect()
    gc.freeze()
    server = os.getpid()
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    if request is None:
        return
    become(request, server)
    first, *rest = request.argv
    if first == "-m":
        sys.argv[:] = rest
        sys.path[0] = request.folder
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif Path(first).is_dir():
        # run_path puts the application first. PYTHONPATH comes next, as with `python FOLDER`.
        python_path = request.environment.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:] = [*filter(None, python_path), *(entry for entry in sys.path[1:] if entry != first)]
        runpy.run_path(first, run_name="__main__")
    else:
        sys.path[0] = str(Path(first).parent)
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main()
