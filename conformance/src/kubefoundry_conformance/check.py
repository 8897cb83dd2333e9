"""Checks and their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.strategies import SearchStrategy

Outcome = Literal["passed", "failed", "skipped"]
SHOWN: Final = 600
"""Longest text of `seen` or `expected` in a report, in characters."""

Subject = TypeVar("Subject")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation of a rule."""

    seen: str
    expected: str


class Skipped(Exception):
    """Raised by a check that does not apply to the subject; the message is the reason."""


class Broken(Exception):
    """Raised if a function of the subject raises. The check of `rule` fails, the other checks are skipped."""

    def __init__(self, rule: str, finding: Finding) -> None:
        super().__init__(finding.seen)
        self.rule = rule
        self.finding = finding


@dataclass(frozen=True, slots=True)
class Check(Generic[Subject]):
    """A check of one rule.

    Attributes:
        rule: The id of the rule.
        title: A few words for the report.
        run: Yields the violations that it finds in a subject.
    """

    rule: str
    title: str
    run: Callable[[Subject], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one check.

    Attributes:
        rule: The id of the rule.
        title: The title of the check.
        mode: `functions`, `control plane`, `cluster` or `selector`.
        outcome: Passed, failed or skipped.
        seen: The violation of a failed check, or the reason of a skipped one.
        expected: The expected behaviour, of a failed check.
        seconds: The duration.
    """

    rule: str
    title: str
    mode: str
    outcome: Outcome
    seen: str = ""
    expected: str = ""
    seconds: float = 0.0


def run(check: Check[Subject], subject: Subject, mode: str) -> Result:
    """Run a check and return its result. An exception of the subject violates the rule that forbids exceptions."""
    began = time.perf_counter()

    def result(outcome: Outcome, seen: str = "", expected: str = "") -> Result:
        return Result(
            check.rule, check.title, mode, outcome, _cut(seen), _cut(expected), time.perf_counter() - began
        )

    try:
        finding = next(iter(check.run(subject)), None)
    except Skipped as skipped:
        return result("skipped", str(skipped))
    except Broken as broken:
        if broken.rule != check.rule:
            return result("skipped", f"{broken.rule} fails first: {broken.finding.seen}")
        finding = broken.finding
    if finding is None:
        return result("passed")
    return result("failed", finding.seen, finding.expected)


def search(
    values: SearchStrategy[Value], check_value: Callable[[Value], Iterable[Finding]], max_examples: int
) -> Iterator[Finding]:
    """Yield the violation of the smallest generated value that has one. The result is the same in every run."""

    @settings(
        max_examples=max_examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
    )
    @given(values)
    def check_each(value: Value) -> None:
        for finding in check_value(value):
            # Hypothesis shrinks only values for which the function raises.
            raise _Violated(finding)

    try:
        check_each()
    except _Violated as violated:
        yield violated.finding


class _Violated(Exception):
    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self.finding = finding


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
