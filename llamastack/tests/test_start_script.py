"""Tests the start of the server's container, with programs that only record their arguments."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_llamastack.render import server, tool
from kubefoundry_llamastack.render.request import Distribution

Make = Callable[..., Distribution]

ECHO = {"providerId": "echo", "image": "example.com/echo:1"}
NOTES = (
    '#!/bin/sh\nprintf "%s" "${0##*/}" >> "$NOTES"\nfor word; do printf " <%s>" "$word" >> "$NOTES"; done\n'
)
NOTES += 'echo " $LLAMA_STACK_CONFIG" >> "$NOTES"\n'
HARD = "$(HOME) `id` ' \" $$ \\ *"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a folder with python3, llama and run."""
    return written(tmp_path, "python3", "llama", "run")


def written(tmp_path: Path, *names: str) -> Path:
    for name in names:
        path = tmp_path / name
        path.write_text(NOTES + '[ "$2" = preflight ] && exit "$CODE"\nexit 0\n')
        path.chmod(0o755)
    return tmp_path


def started(programs: Path, cr: Distribution, code: int) -> tuple[int, list[str]]:
    """Return the exit code, and each program with its arguments."""
    how = server.start(cr, "example.com/stack:1")
    variables = {"PATH": f"{programs}:/usr/bin:/bin", "NOTES": str(programs / "notes"), "CODE": str(code)}
    variables |= {"LLS_PORT": "8321", "LLS_WORKERS": "2"}
    done = subprocess.run([*how["command"], *how["args"]], env=variables, check=False)
    return done.returncode, (programs / "notes").read_text().splitlines()


@pytest.mark.accept("FR-027")
@pytest.mark.parametrize("code", [1, 2])
def test_server_does_not_start_when_preflight_fails(make: Make, programs: Path, code: int) -> None:
    ended, calls = started(programs, make(externalProviders={"inference": [ECHO]}), code)

    assert ended == code
    [call] = calls
    assert call.startswith(f"python3 <{tool.ZIPAPP}> <preflight> <--input> <")


@pytest.mark.accept("FR-026", "FR-027")
@pytest.mark.parametrize(
    ("server_spec", "call"),
    [
        ({}, f"llama <stack> <run> <{tool.EFFECTIVE}> <--port> <8321>"),
        (
            {"containerSpec": {"args": ["--x", HARD]}},
            f"llama <stack> <run> <{tool.EFFECTIVE}> <--port> <8321> <--x> <{HARD}>",
        ),
        (
            {"workers": 2},
            "python3 <-m> <uvicorn> <llama_stack.core.server.server:create_app> <--factory> <--host> <0.0.0.0> "
            "<--port> <8321> <--workers> <2>",
        ),
        ({"containerSpec": {"command": ["run", HARD], "args": ["-v"]}}, f"run <{HARD}> <-v>"),
    ],
    ids=["one worker", "arguments", "two workers", "a command"],
)
def test_server_starts_from_effective_config(
    make: Make, programs: Path, server_spec: dict[str, Any], call: str
) -> None:
    ended, [_, second] = started(programs, make(externalProviders={"inference": [ECHO]}, **server_spec), 0)

    assert (ended, second) == (0, f"{call} {tool.EFFECTIVE}")


@pytest.mark.parametrize("server_spec", [{}, {"workers": 2}], ids=["one worker", "two workers"])
def test_ogx_starts_without_its_own_command(make: Make, tmp_path: Path, server_spec: dict[str, Any]) -> None:
    """It refuses to serve without TLS."""
    programs = written(tmp_path, "python3", "ogx")

    ended, [_, second] = started(programs, make(externalProviders={"inference": [ECHO]}, **server_spec), 0)

    assert ended == 0
    assert second.startswith("python3 <-m> <uvicorn> <ogx.core.server.server:create_app> <--factory> ")
