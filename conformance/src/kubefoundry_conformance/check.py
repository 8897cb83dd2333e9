"""A check: what it looks at, and what comes of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.strategies import SearchStrategy

Outcome = Literal["passed", "failed", "skipped"]
SHOWN: Final = 600
"""Characters of what was seen that a report has room for."""

Subject = TypeVar("Subject")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that is broken: what was seen, and what was expected instead."""

    seen: str
    expected: str


class Skipped(Exception):
    """Why a check has nothing to look at."""


class Broken(Exception):
    """A function of the subject raised: rule and finding. Other checks have nothing to look at then."""

    def __init__(self, rule: str, finding: Finding) -> None:
        super().__init__(finding.seen)
        self.rule = rule
        self.finding = finding


@dataclass(frozen=True, slots=True)
class Check(Generic[Subject]):
    """rule: the id of what it checks. title: what it does, a few words. run: yields what is wrong."""

    rule: str
    title: str
    run: Callable[[Subject], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Result:
    """Of one check. mode: where it ran. seen: of a skipped check, why."""

    rule: str
    title: str
    mode: str
    outcome: Outcome
    seen: str = ""
    expected: str = ""
    seconds: float = 0.0


def run(check: Check[Subject], subject: Subject, mode: str) -> Result:
    """Runs a check. What the subject's own functions raise is a finding of the rule that forbids it."""
    began = time.perf_counter()

    def result(outcome: Outcome, seen: str = "", expected: str = "") -> Result:
        return Result(
            check.rule, check.title, mode, outcome, _cut(seen), _cut(expected), time.perf_counter() - began
        )

    try:
        found = next(iter(check.run(subject)), None)
    except Skipped as skipped:
        return result("skipped", str(skipped))
    except Broken as broken:
        if broken.rule != check.rule:
            return result("skipped", f"{broken.rule} fails first: {broken.finding.seen}")
        found = broken.finding
    if found is None:
        return result("passed")
    return result("failed", found.seen, found.expected)


def search(
    values: SearchStrategy[Value], look: Callable[[Value], Iterable[Finding]], most: int
) -> Iterator[Finding]:
    """What is wrong with the smallest of the generated values that has something wrong; the same in every run."""

    @settings(
        max_examples=most,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
    )
    @given(values)
    def every(value: Value) -> None:
        for finding in look(value):
            raise _Found(finding)

    try:
        every()
    except _Found as found:
        yield found.finding


class _Found(Exception):
    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self.finding = finding


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
