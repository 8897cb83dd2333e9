"""What `make test` says at its end, from what the rungs printed."""

from __future__ import annotations

import pytest

from support.rungs.lines import shares
from support.rungs.outcome import Progress, parse_pytest, summary

XDIST = """\
4 workers [4 items]
tests/a/test_a.py::test_one[2 FAILED]
[gw0] [ 25%] PASSED tests/a/test_a.py::test_one[2 FAILED]
[gw1] [ 50%] FAILED tests/a/test_a.py::test_two
[gw1] [ 75%] SKIPPED tests/a/test_b.py::test_three
[gw1] [100%] ERROR tests/a/test_b.py::test_four
============================== FAILURES ===============================
E   AssertionError: boom
============================= slowest 10 durations ============================
35.12s call     tests/a/test_a.py::test_one[2 FAILED]
4.00s setup    tests/a/test_b.py::test_four
=========================== short test summary info ===========================
SKIPPED [3] tests/a/test_b.py:12: no ../shared beside the checkout
SKIPPED [1] tests/a/test_c.py: could not import 'x'
ERROR tests/a/test_b.py::test_four - OSError
FAILED tests/a/test_a.py::test_two[a - b] - AssertionError: boom
============= 1 failed, 1 passed, 4 skipped, 1 error in 40.52s ================
""".splitlines()

QUIET = """\
tests/pods/test_runner.py::test_it PASSED                        [100%]
SKIPPED [2] tests/pods/test_it.py:3: no ../shared beside the checkout
69 passed, 2 skipped in 301.00s (0:05:01)
""".splitlines()

WITHOUT_ROOT = ["tests/pods: it needs root", "test-pods: SKIPPED, nothing was tested"]


def test_sums_slowest_and_reasons_of_all_rungs_are_put_together() -> None:
    said = "\n".join(
        summary([parse_pytest(XDIST), parse_pytest(QUIET), parse_pytest(["lint is clean"])], 61.4)
    )

    assert said == (
        "\n"
        "the 2 slowest:\n"
        "   35.1 s  call     tests/a/test_a.py::test_one[2 FAILED]\n"
        "    4.0 s  setup    tests/a/test_b.py::test_four\n"
        "\n"
        "LEFT OUT:\n"
        "    5  no ../shared beside the checkout\n"
        "    1  could not import 'x'\n"
        "\n"
        "FAILED:\n"
        "       tests/a/test_b.py::test_four - OSError\n"
        "       tests/a/test_a.py::test_two[a - b] - AssertionError: boom\n"
        "\n"
        "all of it took 61 s\n"
        "70 passed, 2 failed, 6 skipped"
    )


def test_executed_lines_are_summed_by_package() -> None:
    files = {
        f"{path}.py": {"summary": {"num_statements": lines, "covered_lines": executed}}
        for path, lines, executed in (
            ("cli/src/kubefoundry_cli/a", 10, 5),
            ("cli/src/kubefoundry_cli/b/c", 30, 30),
            ("providers/kaito/src/kubefoundry_kaito/d", 60, 0),
            ("sdk/src/kubefoundry_sdk/empty", 0, 0),
        )
    }

    said = list(shares(files))

    assert said == [
        "\nlines that tests executed in their own processes: 35 % of 100",
        "   88 %  cli",
        "    0 %  providers/kaito",
        "    0 %  sdk",
    ]


def test_rung_that_is_left_out_is_named_with_its_reason() -> None:
    said = list(summary([parse_pytest(WITHOUT_ROOT)], 1))

    assert said[0] == "\nLEFT OUT:"
    assert [line.strip() for line in said[1:3]] == WITHOUT_ROOT


@pytest.mark.parametrize(
    ("lines", "said"),
    [(XDIST, "4 tests (100 %), 2 FAILED"), (QUIET, "1 tests (100 %)"), (["lint is clean"], "0 tests")],
)
def test_progress_is_counted_line_by_line(lines: list[str], said: str) -> None:
    progress = Progress()
    for line in lines:
        progress.add(line)

    assert str(progress) == said


def test_of_a_failed_rung_all_is_shown_from_the_first_report_on() -> None:
    assert Progress().interesting(XDIST)[1] == "E   AssertionError: boom"
    assert Progress().interesting(["mypy says no"]) == ["mypy says no"]
