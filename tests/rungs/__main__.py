"""`make test` and `make check`: the rungs side by side, since each of them waits for much of its time.

Says every few seconds how far each one is, shows the whole output of one that failed, and ends with what was left out
and why, the ten slowest tests, and the sums. All that the rungs print is kept in build/rungs/.
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

from rungs.outcome import Progress, closing, of_pytest

ROOT: Final = Path(__file__).resolve().parents[2]
LOGS: Final = ROOT / "build" / "rungs"
TELL: Final = 15.0
"""Seconds between two lines of progress."""

CORES: Final = len(os.sched_getaffinity(0))
WORKERS: Final = os.environ.get("KUBEFOUNDRY_TEST_WORKERS") or str(2 * CORES + 1)
"""A test of real processes waits for much of its time: beside the pods and after them, four leave 11 % of two cores
idle. The more there are, the more CPU time each takes."""

GO: Final = {"GOGC": "400", "GOMEMLIMIT": "1GiB"}
"""For the many API servers that live for seconds: a start takes a quarter less CPU time if garbage is collected less
often, and up to 500 MB of memory."""

PYTEST: Final = (sys.executable, "-m", "pytest", "-vv", "-rs", "--durations=10")
REAL: Final = (*PYTEST, "-n", WORKERS)
UNIT: Final = (*PYTEST, "-n", str(CORES + 1), "-m", "not integration and not upstream and not slow")
"""Each worker collects all tests, which takes seconds of CPU time: one more than there are cores fills the waits."""
RUNGS: Final[dict[str, dict[str, Sequence[str]]]] = {
    "all": {
        "tests": REAL,
        "pods": ("tests/pods/run", "-vv", "-rs", "--durations=10"),
        "lint": ("make", "--no-print-directory", "lint"),
        "go": ("dev/devcluster/build", "test"),
    },
    "check": {
        "unit": UNIT,
        "lint": ("make", "--no-print-directory", "lint"),
    },
    "unit": {"unit": UNIT},
    "integration": {"integration": (*REAL, "-m", "integration and not upstream")},
    "upstream": {"upstream": (*REAL, "-m", "upstream")},
}
"""What each name stands for: rungs and their commands."""


@dataclass(slots=True)
class Rung:
    """One program that runs, with its lines so far."""

    name: str
    command: Sequence[str]
    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    code: int | None = None

    def read(self) -> None:
        """Until it ends."""
        assert self.process.stdout is not None
        with (LOGS / f"{self.name}.log").open("w", buffering=1, encoding="utf-8") as log:
            for line in self.process.stdout:
                log.write(line)
                self.lines.append(line.rstrip("\n"))
                self.progress.take(line)
        self.seconds = time.monotonic() - self.began
        self.code = self.process.wait()

    def state(self) -> str:
        """A few words."""
        if self.code is None:
            return f"{self.name} {self.progress}" if self.progress.tests else f"{self.name} runs"
        return f"{self.name} {'failed' if self.code else 'done'} in {self.seconds:.0f} s"


def start(name: str, command: Sequence[str]) -> Rung:
    """In a session of its own: Ctrl-C is for us, who end all of them."""
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
    """Without the PYTHONPATH of this program: a test's process that inherits one is executed instead of forked."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run(commands: dict[str, Sequence[str]]) -> int:
    """The exit code: 0 where every rung ended with 0."""
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
                said = "; ".join(rung.state() for rung in rungs)
                print(f"{time.monotonic() - began:4.0f} s  {said}", flush=True)
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
    print(*closing([of_pytest(rung.lines) for rung in rungs], time.monotonic() - began), sep="\n")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rungs", description=__doc__)
    parser.add_argument("rungs", choices=RUNGS)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if hasattr(os, "SCHED_BATCH"):
        # For all that is started: a process that wakes up interrupts no other. With a dozen of them on two cores that
        # saves an eighth of the CPU time.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    return run(RUNGS[parser.parse_args().rungs])


if __name__ == "__main__":
    sys.exit(main())
