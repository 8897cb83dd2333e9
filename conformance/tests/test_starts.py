"""REN-3 across restarts. A provider that renders differently after a restart rewrites every model."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kubefoundry_conformance.check import Check, Result, run
from kubefoundry_conformance.functions.starts import check_restarts
from kubefoundry_conformance.functions.subject import Start, load_provider, start_provider
from support import conformance_subjects, hostile_functions
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
    def render(deployment, schema):
        rendered = sound.render(deployment, schema)
        meta = {{**rendered.main["metadata"], "labels": {{"l": {value}}}}}
        return replace(rendered, main={{**rendered.main, "metadata": meta}})
    return replace(sound, render=render)
"""
PROGRAM = """
import json, os, sys
sys.path.append({folder!r})
from hostile_functions import DESCRIPTION, line, write

for raw in sys.stdin:
    request = json.loads(raw)
    result = {{"describe": DESCRIPTION, "supports": []}}.get(request["function"])
    if request["function"] == "render":
        meta = {{"name": request["deployment"]["name"]}}
        main = {{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta, "spec": {{"n": {value}}}}}
        result = {{"main": main}}
    write(line(request, result=result))
"""
NAMES = (f"provider_{number}" for number in itertools.count())
"""Python loads a module only once per name."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    here, modules = tmp_path / "here", tmp_path / "modules"
    for path in (here, modules):
        path.mkdir()
    # A file in the working directory must not replace a module of Python.
    (here / "json.py").write_text("1 / 0")
    monkeypatch.chdir(here)
    # As in a shell, hashes are random.
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
        "'-'.join({entry['name'] for entry in deployment.spec.env})",
        "str(os.environ.get('HOSTNAME'))",
        "os.environ.setdefault('ACME_ID', str(time.time()))",
    ],
)
def test_render_that_differs_between_starts_fails(
    value: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ACME_ID", raising=False)

    outcome = result(folder, value)

    assert (outcome.outcome, " after another start, rendered of {" in outcome.seen) == ("failed", True), (
        outcome
    )
    assert "after a restart" in outcome.expected


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
def test_stable_render_passes(value: str, before: str, folder: Path) -> None:
    assert (outcome := result(folder, value, before)).outcome == "passed", outcome


@pytest.mark.parametrize(("value", "outcome"), [("os.getpid()", "failed"), ("7", "passed")])
def test_program_that_renders_its_pid_fails(value: str, outcome: str, tmp_path: Path) -> None:
    program = tmp_path / "functions.py"
    program.write_text(PROGRAM.format(folder=str(Path(hostile_functions.__file__).parent), value=value))
    command = f"{sys.executable} {program}"
    start = Start.here(command, "functions_command")
    subject = replace(conformance_subjects.of_a_crd(), provider=start_provider(command), start=start)

    found = run(Check("REN-3", "", check_restarts), subject, "functions")

    assert found.outcome == outcome, found
    if outcome == "failed":
        assert " after another start, rendered of {" in found.seen


def test_child_of_provider_ends_with_it(folder: Path) -> None:
    helper = "subprocess.Popen(['sleep', '77'], env={'MARK': __file__})"

    outcome = result(folder, "'l'", f"import subprocess; {IN_A_START} and {helper}")

    assert outcome.outcome == "passed", outcome
    deadline = time.monotonic() + SECONDS
    while left := processes_of(folder):  # it is killed, which takes effect a little later
        assert time.monotonic() < deadline, left


@pytest.mark.parametrize("ends", ["os._exit(0)", "os.kill(os.getpid(), 9)", "sys.exit(0)"])
def test_process_without_result_is_reported(ends: str, folder: Path) -> None:
    outcome = result(folder, "'l'", f"if {IN_A_START}: {ends}")

    assert (outcome.outcome, outcome.expected) == ("failed", "a render"), outcome


def test_failed_process_is_reported_with_its_message(folder: Path) -> None:
    outcome = result(folder, "'l'", f"if {IN_A_START}: sys.exit('no licence server')")

    assert outcome.outcome == "failed"
    assert "no licence server" in outcome.seen


def test_render_that_is_not_json_is_skipped(folder: Path) -> None:
    outcome = result(folder, "{1, 2}")

    assert (outcome.outcome, outcome.seen.startswith("REN-1 fails first")) == ("skipped", True), outcome


def test_provider_without_a_name_is_skipped() -> None:
    outcome = run(Check("REN-3", "", check_restarts), conformance_subjects.of_a_crd(), "functions")

    assert (outcome.outcome, "MODULE:FUNCTION" in outcome.seen) == ("skipped", True)
