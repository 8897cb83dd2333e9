"""The child process of a provider's functions: one line in, one line out, before a deadline.

Not thread-safe: `client.Client` sends one request after another.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Final

from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._provider.results import Fault

log = logging.getLogger(__name__)

LONGEST_LINE: Final = 4 * 2**20
"""Bytes of a response. The API server stores objects of at most 1.5 MiB, and a response has few of them."""

CHUNK: Final = 64 * 1024

ENDING: Final = 0.5
"""Seconds that a program which closed its output has to end, so that its exit code can be reported."""

LOG_LINE: Final = 2000
"""Bytes of a line on stderr that are logged."""

LOG_LINES: Final = 50
"""Lines of stderr that are logged each second."""


class ProgramError(Fault):
    """The program gave no valid response. The text begins with "its program" and names the function."""


class Program:
    """A program that reads requests from stdin and writes responses to stdout."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process was started and has not been stopped. It may have ended by itself."""
        return self._process is not None

    def start(self) -> None:
        """Start the process, in a session of its own. Raise ProgramError if that fails."""
        try:
            self._process = process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ProgramError(f"its program {self._command[0]} cannot be started: {error}") from error
        assert process.stdin and process.stdout and process.stderr
        os.set_blocking(process.stdin.fileno(), False)
        os.set_blocking(process.stdout.fileno(), False)
        reader = threading.Thread(target=_log_lines, args=(process.stderr,), daemon=True)
        reader.start()

    def kill(self) -> None:
        """Kill the process and those of its process group. Any thread may call it."""
        if process := self._process:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Kill the process, and release it. Does nothing if there is none."""
        self.kill()
        process, self._process = self._process, None
        if process is None:
            return
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()

    def unexpected(self) -> str | None:
        """Return what the process did without a request: wrote, or ended. None if it waits."""
        assert self._process and self._process.stdout
        try:
            chunk = os.read(self._process.stdout.fileno(), CHUNK)
        except BlockingIOError:
            return None
        return "its program wrote a line without a request" if chunk else self._ended()

    def exchange(self, line: bytes, function: str, seconds: float) -> bytes:
        """Send a request, with its newline, and return the line of the response.

        Raise ProgramError if there is no response within that many seconds, or more than one line. The process has to
        be stopped then.
        """
        process = self._process
        assert process and process.stdin and process.stdout
        due = time.monotonic() + seconds
        unsent, received = memoryview(line), bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            selector.register(process.stdin, selectors.EVENT_WRITE)
            while not received.endswith(b"\n"):
                left = due - time.monotonic()
                if left <= 0:
                    raise ProgramError(f"its program did not respond to {function} within {seconds:g} s")
                for key, _ in selector.select(left):
                    if key.fileobj is process.stdin:
                        unsent = _written(process.stdin, unsent)
                        if not unsent:
                            selector.unregister(process.stdin)
                    else:
                        received += self._read(process.stdout, function)
                        _check_line(received, function)
        if unsent:
            raise ProgramError(f"its program responded to {function} before it had read the request")
        return bytes(received)

    def _read(self, output: IO[bytes], function: str) -> bytes:
        try:
            chunk = os.read(output.fileno(), CHUNK)
        except BlockingIOError:
            return b""
        if not chunk:
            raise ProgramError(f"{self._ended()} in {function}")
        return chunk

    def _ended(self) -> str:
        assert self._process
        try:
            code = self._process.wait(ENDING)
        except subprocess.TimeoutExpired:
            return "its program closed its output"
        return f"its program ended with {f'exit code {code}' if code >= 0 else f'signal {-code}'}"


def _written(pipe: IO[bytes], unsent: memoryview) -> memoryview:
    """Write a part of the request, and return the rest; nothing if the program reads no more."""
    try:
        return unsent[os.write(pipe.fileno(), unsent[:CHUNK]) :]
    except BlockingIOError:
        return unsent
    except OSError:
        # The end of its output tells why.
        return unsent[:0]


def _check_line(received: bytearray, function: str) -> None:
    if len(received) > LONGEST_LINE:
        raise ProgramError(f"its program wrote a line of more than {LONGEST_LINE // 2**20} MiB in {function}")
    end = received.find(b"\n")
    if 0 <= end < len(received) - 1:
        raise ProgramError(f"its program wrote more than one line in {function}")


def _log_lines(output: IO[bytes]) -> None:
    """Log what the program writes on stderr until its end, bounded in the length and number of lines."""
    second, count = 0, 0
    with output:
        while line := output.readline(LOG_LINE):
            if int(time.monotonic()) != second:
                second, count = int(time.monotonic()), 0
            count += 1
            if count == LOG_LINES:
                log.warning("more lines of the program in this second are not logged")
            elif count < LOG_LINES:
                log.info("program", extra=logs.values(line=line.decode(errors="replace").rstrip()))
