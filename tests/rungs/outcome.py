"""What the output of a rung says: how far it is, what failed, what was left out and why, what was slow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

_ONE: Final = r"(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)"
_TEST: Final = re.compile(rf"^\[gw\d+\] \[ *\d+%\] {_ONE} |::.* {_ONE}(?: \(.*\))? +\[ *\d+%\]$")
"""With several workers the outcome comes first, with one it comes last."""

_PERCENT: Final = re.compile(r"\[\s*(\d+)%\]")
_SUM: Final = re.compile(r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed)\b")
_CLOSING: Final = re.compile(r"^=* ?(?:\d+ \w+, )*\d+ \w+ in [\d.]+s")
_SKIPPED: Final = re.compile(r"^SKIPPED \[(\d+)\] \S+?:(?:\d+:)? (.*)$")
_SLOW: Final = re.compile(r"^\s*([\d.]+)s (call|setup|teardown)\s+(\S.*)$")
_LEFT_OUT: Final = re.compile(r"^(?:tests/)?[\w-]+: (?:SKIPPED|it needs)\b")
SLOWEST: Final = 10


@dataclass(slots=True)
class Progress:
    """How far a run of pytest is, line by line."""

    tests: int = 0
    failed: int = 0
    percent: str = ""

    def take(self, line: str) -> None:
        """One more line of its output."""
        if found := _TEST.search(line.rstrip()):
            self.tests += 1
            self.failed += (found[1] or found[2]) in ("FAILED", "ERROR")
            if reported := _PERCENT.search(line):
                self.percent = f" ({reported[1]} %)"

    def __str__(self) -> str:
        return f"{self.tests} tests{self.percent}" + (f", {self.failed} FAILED" if self.failed else "")

    def interesting(self, lines: Sequence[str]) -> Sequence[str]:
        """The part that says why it failed: from pytest's first report of a failure on, else everything."""
        for at, line in enumerate(lines):
            if re.match(r"=+ (FAILURES|ERRORS) =+", line):
                return lines[at:]
        return lines


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one rung said at its end. left_out: how many tests for which reason. slow: seconds and where."""

    sums: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    slow: tuple[tuple[float, str], ...] = ()


def of_pytest(lines: Iterable[str]) -> Outcome:
    """What the lines say; nothing where no test runner printed them."""
    sums: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    slow: list[tuple[float, str]] = []
    for line in lines:
        if found := _SKIPPED.match(line):
            left_out[found[2]] += int(found[1])
        elif found := _SLOW.match(line):
            slow.append((float(found[1]), f"{found[2]:8} {found[3]}"))
        elif _LEFT_OUT.match(line):
            left_out[line] += 0
        elif _CLOSING.match(line):
            for number, what in _SUM.findall(line):
                sums["failed" if what.startswith("error") else what] += int(number)
    return Outcome(sums, left_out, tuple(slow))


def closing(outcomes: Sequence[Outcome], seconds: float) -> Iterable[str]:
    """The last lines of a run of several rungs."""
    slow = sorted((one for outcome in outcomes for one in outcome.slow), reverse=True)[:SLOWEST]
    if slow:
        yield f"\nthe {len(slow)} slowest:"
        yield from (f"{took:7.1f} s  {what}" for took, what in slow)
    left_out = sum((outcome.left_out for outcome in outcomes), Counter[str]())
    # what left out a whole rung counts no tests
    whole = [line for outcome in outcomes for line, number in outcome.left_out.items() if not number]
    if left_out or whole:
        yield "\nLEFT OUT:"
        yield from (f"{number:5d}  {reason}" for reason, number in left_out.most_common())
        yield from (f"       {line}" for line in whole)
    sums = sum((outcome.sums for outcome in outcomes), Counter[str]())
    yield f"\nall of it took {seconds:.0f} s"
    yield f"{sums['passed']} passed, {sums['failed']} failed, {sums['skipped']} skipped"
