"""A pytest plugin: what became of each test that is marked with `accept`, a JSON line each.

The file is the one that `KUBEFOUNDRY_OUTCOMES` names; several runs may write into it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

import pytest

from acceptance.points import Told

VARIABLE: Final = "KUBEFOUNDRY_OUTCOMES"
PROPERTY: Final = "accept"


def pytest_itemcollected(item: pytest.Item) -> None:
    """A report knows the properties of its test, and not its marks."""
    ids = [name for mark in item.iter_markers("accept") for name in mark.args]
    item.user_properties.append((PROPERTY, ids))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Of the call itself; of what comes before and after it only what went wrong."""
    ids = dict(report.user_properties).get(PROPERTY)
    if ids and (report.when == "call" or report.outcome != "passed"):
        with Path(os.environ[VARIABLE]).open("a") as file:
            file.write(json.dumps([report.nodeid, report.outcome, ids]) + "\n")


def read(file: Path) -> list[Told]:
    """One of each test: the last thing that was said of it."""
    lines = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return list({test: Told(test, outcome, tuple(ids)) for test, outcome, ids in lines}.values())
