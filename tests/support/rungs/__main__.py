"""`make test`, `make test-all` and `make check`: run the rungs concurrently, because each spends much of its time
waiting.

The output has a line of progress every few seconds and the whole output of a failed rung. It ends with the ten
slowest tests, the skipped tests with their reasons, the failed tests, and the sums; `make test-all` also prints the
share of lines that the tests executed. build/rungs/ has the complete output of each rung.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from support.rungs.lines import measured
from support.rungs.outcome import Progress, parse_pytest, summary

ROOT: Final = Path(__file__).resolve().parents[3]
LOGS: Final = ROOT / "build" / "rungs"
TELL: Final = 15.0
"""Seconds between two lines of progress."""

CORES: Final = len(os.sched_getaffinity(0))
WORKERS: Final = os.environ.get("KUBEFOUNDRY_TEST_WORKERS") or str(2 * CORES + 1)
"""Processes of pytest. Tests of real processes wait a lot: four workers leave 11 % of two cores idle. More workers
take more CPU time each."""

GO: Final = {"GOGC": "400", "GOMEMLIMIT": "1GiB"}
"""Environment for the many API servers that live for seconds. Less garbage collection saves a quarter of the CPU time
of a start, and takes up to 500 MB of memory."""

PYTEST: Final = (sys.executable, "-m", "pytest", "-vv", "-rsfE", "--durations=10")
REAL: Final = (*PYTEST, "-n", WORKERS)
COVERED: Final = ("--cov", "--cov-report=")
"""Measures the lines that the tests execute. The settings stand in pyproject.toml."""

UNIT: Final = (*PYTEST, "-n", str(CORES + 1), "-m", "not integration and not upstream and not slow")
"""Each worker collects all tests, which takes seconds of CPU time. One worker more than cores fills the waits."""
TEST: Final[dict[str, Sequence[str]]] = {
    "tests": REAL,
    "pods": ("tests/pods/run", "-vv", "-rsfE", "--durations=10"),
    "lint": ("make", "--no-print-directory", "lint"),
}
RUNGS: Final[dict[str, dict[str, Sequence[str]]]] = {
    "test": TEST,
    "all": {**TEST, "tests": (*REAL, *COVERED), "go": ("dev/devcluster/build", "test")},
    "check": {
        "unit": UNIT,
        "lint": ("make", "--no-print-directory", "lint"),
    },
    "unit": {"unit": UNIT},
    "integration": {"integration": (*REAL, "-m", "integration and not upstream")},
    "upstream": {"upstream": (*REAL, "-m", "upstream")},
}
"""Rungs and their commands, by argument of this program."""

SAMPLED: Final = ("test", "check", "unit")
"""Arguments with which a sample of the cases runs (`support.sampled_cases`)."""


@dataclass(slots=True)
class Rung:
    """A running program, with its output so far."""

    name: str
    command: Sequence[str]
    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    code: int | None = None

    def read(self) -> None:
        """Read the output until the program ends."""
        assert self.process.stdout is not None
        with (LOGS / f"{self.name}.log").open("w", buffering=1, encoding="utf-8") as log:
            for line in self.process.stdout:
                log.write(line)
                self.lines.append(line.rstrip("\n"))
                self.progress.add(line)
        self.seconds = time.monotonic() - self.began
        self.code = self.process.wait()

    def state(self) -> str:
        """Return the state in a few words."""
        if self.code is None:
            return f"{self.name} {self.progress}" if self.progress.tests else f"{self.name} runs"
        return f"{self.name} {'failed' if self.code else 'done'} in {self.seconds:.0f} s"


def start(name: str, command: Sequence[str]) -> Rung:
    """Start a rung in a session of its own, so that Ctrl-C reaches only this program, which stops all rungs."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**GO, **_environment()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    return Rung(name, command, process)


def _environment() -> dict[str, str]:
    """Return the environment without PYTHONPATH. With it, tests execute their processes instead of forking them."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run(commands: dict[str, Sequence[str]]) -> int:
    """Run the rungs, and return 0 if all of them succeeded."""
    LOGS.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    rungs = [start(name, command) for name, command in commands.items()]
    threads = [threading.Thread(target=rung.read, daemon=True) for rung in rungs]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(TELL)
                states = "; ".join(rung.state() for rung in rungs)
                print(f"{time.monotonic() - began:4.0f} s  {states}", flush=True)
    except KeyboardInterrupt:
        for rung in rungs:
            if rung.code is None:
                os.killpg(rung.process.pid, signal.SIGINT)
        for thread in threads:
            thread.join()
        return 130
    failed = [rung for rung in rungs if rung.code]
    for rung in failed:
        print(f"\n--- {rung.name} failed with exit code {rung.code}: {' '.join(map(str, rung.command))}")
        print(*rung.progress.interesting(rung.lines), sep="\n")
    if any(COVERED[0] in rung.command for rung in rungs):
        print(*measured(ROOT), sep="\n")
    print(*summary([parse_pytest(rung.lines) for rung in rungs], time.monotonic() - began), sep="\n")
    return 1 if failed else 0


def main() -> int:
    """Run the command line, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m support.rungs", description=__doc__)
    parser.add_argument("rungs", choices=RUNGS)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if hasattr(os, "SCHED_BATCH"):
        # Children inherit this policy: a process that wakes up does not interrupt another. With a dozen processes on
        # two cores that saves an eighth of the CPU time.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    rungs = parser.parse_args().rungs
    if rungs in SAMPLED:
        os.environ.setdefault("KUBEFOUNDRY_CASES", "sample")
    return run(RUNGS[rungs])


if __name__ == "__main__":
    sys.exit(main())
