"""Where the time of a run goes: `pytest -p support.timing.recorder --timing FILE` writes it by phase and fixture.

Each line is a JSON object with `wall` and `cpu` in seconds. CPU is that of pytest and of all processes that were
started from it, whoever their parent is by now: a control group counts them (cgroup v1 or v2; root). Each
process has a group and a file of its own (FILE.PID).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TextIO

import pytest

CGROUPS: Final = Path("/sys/fs/cgroup")
_FILE: pytest.StashKey[TextIO] = pytest.StashKey()
_usage: Callable[[], float] = time.process_time


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--timing", type=Path, metavar="FILE", help="write where the time goes, as JSON lines")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--timing")
    if path is not None:
        global _usage
        _usage = _group()
        # a test may start a pytest of its own, which gets the same options
        config.stash[_FILE] = path.with_name(f"{path.name}.{os.getpid()}").open("w", buffering=1)


def pytest_unconfigure(config: pytest.Config) -> None:
    if (file := config.stash.get(_FILE, None)) is not None:
        file.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with _measured(item.config, test=item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Iterator[None]:
    with _measured(
        request.config, fixture=fixturedef.argname, scope=fixturedef.scope, test=request.node.nodeid
    ):
        return (yield)


class _measured:
    """Writes one line when it ends: what was done, with its wall and CPU seconds."""

    def __init__(self, config: pytest.Config, **what: str) -> None:
        self._file, self._what = config.stash.get(_FILE, None), what

    def __enter__(self) -> None:
        self._began = time.monotonic(), _usage()

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            wall, cpu = time.monotonic() - self._began[0], _usage() - self._began[1]
            self._file.write(json.dumps({**self._what, "wall": round(wall, 3), "cpu": round(cpu, 2)}) + "\n")


def _group() -> Callable[[], float]:
    """Moves this process into a control group of its own; what tells the CPU seconds of all in it."""
    version_1 = CGROUPS / "cpuacct"
    made = (version_1 if version_1.is_dir() else CGROUPS) / f"kubefoundry-tests-{os.getpid()}"
    made.mkdir()
    (made / "cgroup.procs").write_text(str(os.getpid()))
    if version_1.is_dir():
        return lambda: int((made / "cpuacct.usage").read_text()) / 1e9
    return lambda: int((made / "cpu.stat").read_text().split()[1]) / 1e6
