"""Starts the probe and reads its answers (see probe.py)."""

from __future__ import annotations

import json
import os
import pkgutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from llamastack_providers.errors import Code, Failure


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the provider says of itself at run time."""

    provider_type: str
    api: str


def load(entries: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[Loaded]:
    """For each section and entry of run.yaml what its provider is. Raises Failure at the first that is not right."""
    source = pkgutil.get_data(__package__, "probe.py")
    assert source is not None
    read_end, write_end = os.pipe()
    # -B: the providers' tree is read-only in the server's container
    command = [sys.executable, "-B", "-c", source.decode(), str(write_end)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(write_end,)) as process,
        os.fdopen(read_end, encoding="utf-8") as answers,
    ):
        os.close(write_end)
        assert process.stdin is not None
        _send(process.stdin, json.dumps(entries, default=str).encode())
        try:
            for _, entry in entries:
                yield _answer(answers, process, entry)
        finally:
            # threads that a provider has started would keep it alive
            process.kill()


def _send(stdin: IO[bytes], content: bytes) -> None:
    try:
        stdin.write(content)
        stdin.close()
    except BrokenPipeError:
        # it died before it read; that is told by the missing answer
        pass


def _answer(answers: IO[str], process: subprocess.Popen[bytes], entry: dict[str, Any]) -> Loaded:
    who = {"provider_id": str(entry.get("provider_id") or ""), "module": str(entry["module"])}
    value: dict[str, Any] = {"start": True}
    while "start" in value:
        line = answers.readline()
        if not line:
            raise Failure(Code.ProbeDied, _end(process.wait()), **who)
        value = json.loads(line)
    if "code" in value:
        code = Code[value["code"]]
        about = {} if code is Code.ServerMissing else who
        raise Failure(code, value["reason"], detail=value["detail"], **about)
    return Loaded(value["type"], value["api"])


def _end(code: int) -> str:
    if code >= 0:
        return f"python ended with exit code {code} while the provider was loaded"
    return f"python was ended by {signal.Signals(-code).name} while the provider was loaded"
