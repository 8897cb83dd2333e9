"""Parse the output of a rung: progress, failures, skipped tests with reasons, and slow tests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

_ONE: Final = r"(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)"
_TEST: Final = re.compile(rf"^\[gw\d+\] \[ *\d+%\] {_ONE} |::.* {_ONE}(?: \(.*\))? +\[ *\d+%\]$")
"""A line with the outcome of a test: first with several workers, last with a single worker."""

_PERCENT: Final = re.compile(r"\[\s*(\d+)%\]")
_SUM: Final = re.compile(r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed)\b")
_CLOSING: Final = re.compile(r"^=* ?(?:\d+ \w+, )*\d+ \w+ in [\d.]+s")
_SKIPPED: Final = re.compile(r"^SKIPPED \[(\d+)\] \S+?:(?:\d+:)? (.*)$")
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+\.py\b.*)")
"""A line of pytest's own list of failed tests, which has the first line of each error."""

_LONGEST: Final = 400
"""Characters that are shown of such a line."""

_SLOW: Final = re.compile(r"^\s*([\d.]+)s (call|setup|teardown)\s+(\S.*)$")
_LEFT_OUT: Final = re.compile(r"^(?:tests/)?[\w-]+: (?:SKIPPED|it needs)\b")
SLOWEST: Final = 10


@dataclass(slots=True)
class Progress:
    """The progress of a run of pytest."""

    tests: int = 0
    failed: int = 0
    percent: str = ""

    def add(self, line: str) -> None:
        """Count the test that a line of output reports, if any."""
        if test := _TEST.search(line.rstrip()):
            self.tests += 1
            self.failed += (test[1] or test[2]) in ("FAILED", "ERROR")
            if percent := _PERCENT.search(line):
                self.percent = f" ({percent[1]} %)"

    def __str__(self) -> str:
        return f"{self.tests} tests{self.percent}" + (f", {self.failed} FAILED" if self.failed else "")

    def interesting(self, lines: Sequence[str]) -> Sequence[str]:
        """Return the output from pytest's first report of a failure on, or all of it."""
        for index, line in enumerate(lines):
            if re.match(r"=+ (FAILURES|ERRORS) =+", line):
                return lines[index:]
        return lines


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a rung.

    Attributes:
        sums: Numbers of tests by outcome.
        left_out: Numbers of skipped tests by reason. A line about a whole rung has the number 0.
        slow: Seconds and names of slow tests.
        failed: Names of failed tests, each with the first line of its error.
    """

    sums: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    slow: tuple[tuple[float, str], ...] = ()
    failed: tuple[str, ...] = ()


def parse_pytest(lines: Iterable[str]) -> Outcome:
    """Parse the output of pytest. Output of other programs gives an empty outcome."""
    sums: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    slow: list[tuple[float, str]] = []
    failed: list[str] = []
    for line in lines:
        if skipped := _SKIPPED.match(line):
            left_out[skipped[2]] += int(skipped[1])
        elif named := _FAILED.match(line):
            failed.append(named[1][:_LONGEST])
        elif timed := _SLOW.match(line):
            slow.append((float(timed[1]), f"{timed[2]:8} {timed[3]}"))
        elif _LEFT_OUT.match(line):
            left_out[line] += 0
        elif _CLOSING.match(line):
            for number, outcome in _SUM.findall(line):
                sums["failed" if outcome.startswith("error") else outcome] += int(number)
    return Outcome(sums, left_out, tuple(slow), tuple(failed))


def summary(outcomes: Sequence[Outcome], seconds: float) -> Iterable[str]:
    """Yield the last lines of a run of several rungs."""
    slow = sorted((test for outcome in outcomes for test in outcome.slow), reverse=True)[:SLOWEST]
    if slow:
        yield f"\nthe {len(slow)} slowest:"
        yield from (f"{duration:7.1f} s  {name}" for duration, name in slow)
    left_out = sum((outcome.left_out for outcome in outcomes), Counter[str]())
    # A rung that was left out as a whole has no number of tests.
    whole = [line for outcome in outcomes for line, number in outcome.left_out.items() if not number]
    if left_out or whole:
        yield "\nLEFT OUT:"
        yield from (f"{number:5d}  {reason}" for reason, number in left_out.most_common())
        yield from (f"       {line}" for line in whole)
    failed = [name for outcome in outcomes for name in outcome.failed]
    if failed:
        # Last, because a reader of a cut log sees its end.
        yield "\nFAILED:"
        yield from (f"       {name}" for name in failed)
    sums = sum((outcome.sums for outcome in outcomes), Counter[str]())
    yield f"\nall of it took {seconds:.0f} s"
    yield f"{sums['passed']} passed, {sums['failed']} failed, {sums['skipped']} skipped"
