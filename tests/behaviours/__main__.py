"""`make behaviours`: runs the tests of every behaviour, and prints each with its outcome."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import pytest

from behaviours.listed import ROOT, Behaviour, Outcome, behaviours, outcome


class Outcomes:
    """A pytest plugin that notes what became of each test."""

    def __init__(self) -> None:
        self.told: dict[str, Outcome] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.told[report.nodeid] = report.outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m behaviours", description=__doc__)
    parser.add_argument("--section", default="", help="those of sections whose name contains this text")
    wanted = parser.parse_args().section
    chosen = [behaviour for behaviour in behaviours() if wanted in behaviour.section]
    tests = dict.fromkeys(test for behaviour in chosen for test in behaviour.tests)
    noted = Outcomes()
    code = pytest.main([f"--rootdir={ROOT}", *(str(ROOT / test) for test in tests)], plugins=[noted])
    print("\n".join(table(chosen, noted.told)))
    return int(code)


def table(chosen: Sequence[Behaviour], told: dict[str, Outcome]) -> list[str]:
    """Markdown, a row a behaviour."""
    rows = []
    for behaviour in chosen:
        said, passed = outcome(behaviour, told)
        names = "<br>".join(f"`{test}`" for test in behaviour.tests)
        rows.append(f"| {behaviour.section} | {behaviour.says} | {names} | {said} | {passed} |")
    return ["", "| section | behaviour | tests | outcome | passed |", "|---|---|---|---|---:|", *rows]


if __name__ == "__main__":
    sys.exit(main())
