"""Makes the probe (see probe.py) load one provider after another, each within its deadline.

A provider's processes end with its turn: its process group is killed, and so are processes that left the
group.
"""

from __future__ import annotations

import contextlib
import json
import os
import pkgutil
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from llamastack_providers import orphans
from llamastack_providers.errors import Code, Failure

SERVER_SECONDS: Final = 240
"""Seconds for llama-stack's own import, in which providers' packages may take part; 2 s, on a cold disk 20."""

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Facts that the provider reports about itself at run time.

    Attributes:
        takes_token: Whether its configuration is to get the file with the token for its service.
    """

    provider_type: str
    api: str
    takes_token: bool


@dataclass(slots=True)
class Probe:
    """A running probe.

    Attributes:
        process: Its process.
        answers: File descriptor of the pipe with its answers.
        seconds: Deadline of each provider.
        types: llama-stack's built-in provider types by API, known once `open_probe` returns.
    """

    process: subprocess.Popen[bytes]
    answers: int
    seconds: int
    types: Mapping[str, list[str]] = field(default_factory=dict)
    _rest: bytes = b""

    def load(self, section: str, entry: Answer, token_file: str) -> Loaded:
        """Load a provider of run.yaml.

        Args:
            section: Its API.
            entry: Its entry.
            token_file: The file with the token for its service, empty if there is none.

        Raises:
            Failure: The provider is invalid.
        """
        provider = about(entry)
        try:
            request = {"section": section, "entry": entry, "token_file": token_file}
            spec = self._ask(request, self.seconds)
            return Loaded(spec["type"], spec["api"], spec["takes_token"])
        except _Ended as ended:
            text = f"{ended} while the provider was loaded"
            raise Failure(ended.code, text, provider_id=provider[0], module=provider[1]) from None
        except Failure as failure:
            failure.provider_id, failure.module = provider
            raise
        except (KeyError, TypeError):
            reason = "the provider wrote to the pipe that belongs to the checks"
            raise Failure(Code.ProbeDied, reason, provider_id=provider[0], module=provider[1]) from None

    def start(self, config: Path, providers: int) -> None:
        """Start the whole server without a port.

        Raises:
            Failure: StartFailed, with the id of the provider that was being started.
        """
        turns: list[str] = [""]
        try:
            self._ask({"start": str(config)}, self.seconds * max(1, providers), turns)
        except _Ended as ended:
            raise Failure(Code.StartFailed, f"{ended}", provider_id=turns[-1]) from None
        except Failure as failure:
            failure.provider_id = turns[-1]
            raise

    def _ask(self, request: Answer, seconds: int, turns: list[str] | None = None) -> Answer:
        assert self.process.stdin is not None
        # If the probe has died, the missing answer reports it.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request, default=str).encode() + b"\n")
            self.process.stdin.flush()
        return self._answer(seconds, turns if turns is not None else [])

    def _answer(self, seconds: int, turns: list[str], *, first: bool = False) -> Answer:
        """Return the next answer in full.

        Raises:
            Failure: The answer is a problem.
            _Ended: The process has ended without an answer.
        """
        deadline = time.monotonic() + seconds
        result: Answer | None = None
        group = 0
        try:
            while True:
                line = self._line(deadline)
                if line is None:
                    raise _Ended(Code.TookTooLong, f"it took longer than {seconds} s")
                value: Answer = _read(line) if line else {"ended": self.process.wait()}
                group = value.get("began", group)
                if "turn" in value:
                    turns.append(str(value["turn"]))
                result = value.get("found", result)
                if "ended" in value or (first and result is not None):
                    break
            if not isinstance(result, dict):
                raise _Ended(Code.ProbeDied, _end(value.get("ended")))
            if "code" in result:
                raise _failure(result)
            return result
        finally:
            orphans.end(group, besides=self.process.pid)

    def _line(self, deadline: float) -> bytes | None:
        """Return the next line: empty once the probe has ended, None at the deadline.

        The pipe alone does not show that the probe has ended: a process that a provider started may keep it
        open.
        """
        with selectors.DefaultSelector() as ready:
            ready.register(self.answers, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                seconds = deadline - time.monotonic()
                if seconds <= 0:
                    return None
                # Checked before the pipe, so that output from before the end is still read.
                has_ended = self.process.poll() is not None
                if ready.select(0 if has_ended else min(seconds, 0.5)):
                    if not (chunk := os.read(self.answers, 65536)):
                        return b""
                    self._rest += chunk
                elif has_ended:
                    return b""
        line, _, self._rest = self._rest.partition(b"\n")
        return line


class _Ended(Exception):
    """The probe gave no answer.

    Attributes:
        code: The entry of the table.
    """

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code


@contextlib.contextmanager
def open_probe(packages: Path | None, seconds: int) -> Iterator[Probe]:
    """Start a probe and import llama-stack in it.

    Args:
        packages: The providers' tree, which precedes all other packages. None for only the distribution's
            own.
        seconds: Deadline of each provider.

    Raises:
        Failure: llama-stack cannot be imported.
    """
    source = pkgutil.get_data(__package__, "probe.py")
    assert source is not None
    orphans.adopt()
    read_end, write_end = os.pipe()
    path = [str(packages)] if packages else []
    path += [inherited] if (inherited := os.environ.get("PYTHONPATH")) else []
    process = subprocess.Popen(
        # -B: the providers' tree is read-only in the server's container.
        [sys.executable, "-B", "-c", source.decode(), str(write_end)],
        stdin=subprocess.PIPE,
        pass_fds=(write_end,),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        start_new_session=True,
    )
    os.close(write_end)
    probe = Probe(process, read_end, seconds)
    try:
        try:
            probe.types = probe._answer(SERVER_SECONDS, [], first=True)["types"]
        except _Ended as ended:
            raise Failure(Code.ServerMissing, f"{ended} while llama-stack was imported") from None
        yield probe
    finally:
        process.kill()
        process.wait()
        orphans.end(process.pid)
        with contextlib.suppress(BrokenPipeError):
            assert process.stdin is not None
            process.stdin.close()
        os.close(read_end)


def about(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Return id and module of the provider of an entry of run.yaml."""
    return str(entry.get("provider_id") or ""), str(entry["module"])


def _read(line: bytes) -> Answer:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _failure(problem: Answer) -> Failure:
    code = Code.__members__.get(str(problem.get("code")), Code.ProbeDied)
    reason, detail = str(problem.get("reason", "")), str(problem.get("detail", ""))
    return Failure(code, reason, detail=detail, quoted=bool(problem.get("quoted")))


def _end(code: Any) -> str:
    if not isinstance(code, int) or code >= 0:
        return f"python ended with exit code {code}"
    numbers = {item.value for item in signal.Signals}
    return f"python was ended by {signal.Signals(-code).name if -code in numbers else f'signal {-code}'}"
