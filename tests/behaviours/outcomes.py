"""A pytest plugin that writes the outcome of each test as a JSON line to the file in `KUBEFOUNDRY_OUTCOMES`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from behaviours.catalogue import Outcome

VARIABLE: Final = "KUBEFOUNDRY_OUTCOMES"
"""Environment variable with the path of the file. Several runs may write to it."""

_PROPERTY: Final = "accept"


class Told(NamedTuple):
    """The outcome of a test, and the arguments of its marks `accept`."""

    test: str
    outcome: Outcome
    ids: tuple[str, ...]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Copy the marks to the properties of the test, because a report has no marks."""
    ids = [name for mark in item.iter_markers("accept") for name in mark.args]
    item.user_properties.append((_PROPERTY, ids))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write the outcome of the call. Of set-up and teardown, write only failures and skips."""
    if report.when == "call" or report.outcome != "passed":
        ids = dict(report.user_properties).get(_PROPERTY)
        with Path(os.environ[VARIABLE]).open("a") as file:
            file.write(json.dumps([report.nodeid, report.outcome, ids]) + "\n")


def read(file: Path) -> list[Told]:
    """Return the last outcome of each test."""
    lines = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return list({test: Told(test, outcome, tuple(ids)) for test, outcome, ids in lines}.values())
