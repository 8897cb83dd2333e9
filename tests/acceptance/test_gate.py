"""The gate: what lets it pass, and each thing that does not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from acceptance.__main__ import MARKED, accepted
from acceptance.points import LIST, Verdict, points, verdict
from behaviours.outcomes import Told

DEMANDED = "# two points\nA-1 the first of them\nA-2 the second\n"
MARK = "import pytest\n\n"
GOOD = '@pytest.mark.accept("A-1")\ndef test_first(): ...\n\n@pytest.mark.accept("A-2")\ndef test_second(): ...\n'


def judged(*reported: Told) -> Verdict:
    return verdict(points(DEMANDED), reported)


PYTEST = ("env", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1", sys.executable, "-m", "pytest", "-p", "no:cacheprovider")
"""Without plugins of other packages, which take four times as long to load as such a run lasts."""

PASSED = Told("t::one", "passed", ("A-1", "A-2"))


@pytest.mark.parametrize(
    ("reported", "holds", "line"),
    [
        ([PASSED], True, "2 of 2 ids shown"),
        ([PASSED, Told("t::two", "skipped", ("A-2",))], True, "A-2      the second: 1 passed, 1 skipped"),
        ([], False, "A-1      the first of them: NOT SHOWN, no test"),
        ([Told("t::one", "passed", ("A-1",))], False, "1 of 2 ids shown"),
        (
            [Told("t::one", "passed", ("A-1",)), Told("t::two", "skipped", ("A-2",))],
            False,
            "A-2      the second: NOT SHOWN, 1 skipped",
        ),
        (
            [Told("t::one", "passed", ("A-1",)), Told("t::two", "failed", ("A-2",))],
            False,
            "A-2      the second: NOT SHOWN, 1 failed",
        ),
        ([PASSED, Told("t::two", "failed", ("A-2",))], False, "FAILED t::two"),
        ([PASSED, Told("t::two", "passed", ("A-3",))], False, "UNKNOWN ID A-3 of t::two"),
    ],
    ids=[
        "all",
        "one more skipped",
        "none",
        "without test",
        "skipped",
        "failed",
        "one more failed",
        "unknown",
    ],
)
def test_verdict(reported: list[Told], holds: bool, line: str) -> None:
    found = judged(*reported)

    assert found.holds is holds
    assert line in found.lines


@pytest.mark.parametrize(("test", "holds"), [("tests/pods/a.py::t", True), ("tool/tests/a.py::t", False)])
def test_point_of_a_stand_in_is_not_shown_on_a_real_server(test: str, holds: bool) -> None:
    reported = [Told(test, "passed", ("SC-008",))]

    found = verdict(points("SC-008 optional imports may fail\n"), reported)

    assert found.holds is holds
    assert ("NOT SHOWN on a real server: SC-008" in found.lines) is not holds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "code", "line"),
    [
        (GOOD, 0, "2 of 2 ids shown"),
        (
            GOOD.replace("second(): ...", "second(): pytest.skip('no')"),
            1,
            "A-2      the second: NOT SHOWN, 1 skipped",
        ),
        (
            GOOD + "@pytest.fixture(autouse=True)\ndef after():\n    yield\n    assert 0\n",
            1,
            "A-1      the first of them: NOT SHOWN, 1 failed",
        ),
        (GOOD + "raise RuntimeError\n", 1, "0 of 2 ids shown"),
        (GOOD + "def test_other(): assert 0\n", 0, "2 of 2 ids shown"),
    ],
    ids=[
        "all",
        "skipped",
        "failed afterwards",
        "broken",
        "an unmarked failure",
    ],
)
def test_acceptance_run_ends_with_its_verdict(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], source: str, code: int, line: str
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = accept\n")
    (tmp_path / "test_it.py").write_text(MARK + source)

    ended = accepted([(*PYTEST, "--rootdir", str(tmp_path), str(tmp_path), *MARKED)], DEMANDED)

    assert ended == code
    assert line in capfd.readouterr().out


@pytest.mark.slow
def test_several_runs_are_one_verdict(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = accept\n")
    first, _, second = GOOD.partition("\n\n")
    runs = []
    for name, source in (("one", first), ("two", second)):
        (tmp_path / f"test_{name}.py").write_text(MARK + source)
        file = str(tmp_path / f"test_{name}.py")
        runs.append((*PYTEST, file, "--rootdir", str(tmp_path), *MARKED))

    assert accepted(runs[:1], DEMANDED) == 1
    assert accepted(runs, DEMANDED) == 0
    assert accepted([*runs, ("false",)], DEMANDED) == 1
    assert "2 of 2 ids shown" in capfd.readouterr().out


def test_list_has_each_point_once() -> None:
    lines = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]

    assert len(points(LIST.read_text())) == len(lines) == 118
