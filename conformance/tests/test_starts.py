"""A provider that renders otherwise after a restart rewrites every model with each of its upgrades."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kubefoundry_conformance.check import Check, Result, run
from kubefoundry_conformance.functions.starts import check_restarts
from kubefoundry_conformance.functions.subject import Start, load_provider
from support import conformance_subjects
from support.processes import processes_of
from support.waiting import SECONDS

pytestmark = pytest.mark.slow

PROVIDER = """
import os, random, sys, time
from dataclasses import replace
from kubefoundry_widgets.provider import with_defaults

STARTED = time.time()
{before}

def provider():
    sound = with_defaults()
    def render(asked, schema):
        made = sound.render(asked, schema)
        meta = {{**made.main["metadata"], "labels": {{"l": {value}}}}}
        return replace(made, main={{**made.main, "metadata": meta}})
    return replace(sound, render=render)
"""
NAMES = (f"provider_{number}" for number in itertools.count())
"""Python loads a module of one name once."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    here, modules = tmp_path / "here", tmp_path / "modules"
    for made in (here, modules):
        made.mkdir()
    # what lies where a vendor calls the kit is not taken for a module of Python's
    (here / "json.py").write_text("1 / 0")
    monkeypatch.chdir(here)
    # as in a shell, whose hashes are random
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    monkeypatch.syspath_prepend(modules)
    yield modules


def result(folder: Path, value: str, before: str = "") -> Result:
    name = next(NAMES)
    (folder / f"{name}.py").write_text(PROVIDER.format(value=value, before=before))
    where = f"{name}:provider"
    start = Start.here(where)
    subject = replace(conformance_subjects.of_a_crd(), provider=load_provider(where), start=start)
    return run(Check("REN-3", "", check_restarts), subject, "functions")


@pytest.mark.parametrize(
    "value",
    [
        "'-'.join({'tensor', 'pipeline', 'data'})",
        "str(hash('m') % 7)",
        "str(STARTED)",
        "str(os.getpid())",
        "str(random.Random().random())",
        "str(id(sys))",
        "'-'.join({one['name'] for one in asked.spec.env})",
        "os.environ.get('HOSTNAME')",
        "os.environ.setdefault('ACME_ID', str(time.time()))",
    ],
)
def test_what_differs_is_seen(value: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACME_ID", raising=False)

    seen = result(folder, value)

    assert (seen.outcome, " after another start, rendered of {" in seen.seen) == ("failed", True), seen
    assert "after a restart" in seen.expected


IN_A_START = "'PYTHONHASHSEED' in os.environ"


@pytest.mark.parametrize(
    ("value", "before"),
    [
        ("'-'.join(sorted({'tensor', 'pipeline'}))", ""),
        ("'ä\U0001f600'", ""),
        ("'l'", "print('{', flush=True)"),
        ("str(os.environ.get('PYTHONPATH'))", ""),
        ("'l'", "import pathlib; sys.path.insert(0, pathlib.Path('/'))"),
        ("'l'", "os.chdir('/')"),
        (
            "'l'",
            f"import threading; {IN_A_START} and threading.Thread(target=time.sleep, args=(99,)).start()",
        ),
    ],
)
def test_what_stays_passes(value: str, before: str, folder: Path) -> None:
    assert (found := result(folder, value, before)).outcome == "passed", found


def test_what_a_provider_starts_ends_with_it(folder: Path) -> None:
    helper = "subprocess.Popen(['sleep', '77'], env={'MARK': __file__})"

    seen = result(folder, "'l'", f"import subprocess; {IN_A_START} and {helper}")

    assert seen.outcome == "passed", seen
    ends = time.monotonic() + SECONDS
    while left := processes_of(folder):  # it is killed, which takes effect a little later
        assert time.monotonic() < ends, left


@pytest.mark.parametrize("ends", ["os._exit(0)", "os.kill(os.getpid(), 9)", "sys.exit(0)"])
def test_a_process_without_an_answer_is_reported(ends: str, folder: Path) -> None:
    seen = result(folder, "'l'", f"if {IN_A_START}: {ends}")

    assert (seen.outcome, seen.expected) == ("failed", "a render"), seen


def test_a_process_that_fails_is_reported(folder: Path) -> None:
    seen = result(folder, "'l'", f"if {IN_A_START}: sys.exit('no licence server')")

    assert seen.outcome == "failed"
    assert "no licence server" in seen.seen


def test_what_is_not_json_is_left_to_its_rule(folder: Path) -> None:
    seen = result(folder, "{1, 2}")

    assert (seen.outcome, seen.seen.startswith("REN-1 fails first")) == ("skipped", True), seen


def test_a_provider_without_a_name_is_not_checked() -> None:
    seen = run(Check("REN-3", "", check_restarts), conformance_subjects.of_a_crd(), "functions")

    assert (seen.outcome, "MODULE:FUNCTION" in seen.seen) == ("skipped", True)
