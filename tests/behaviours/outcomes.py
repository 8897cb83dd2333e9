"""A pytest plugin: what became of each test, a JSON line each, into the file that `KUBEFOUNDRY_OUTCOMES` names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

import pytest

from behaviours.catalogue import Outcome

VARIABLE: Final = "KUBEFOUNDRY_OUTCOMES"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Of the call itself; of what comes before and after it only what went wrong."""
    if report.when == "call" or report.outcome != "passed":
        with Path(os.environ[VARIABLE]).open("a") as file:
            file.write(json.dumps([report.nodeid, report.outcome]) + "\n")


def read(file: Path) -> dict[str, Outcome]:
    """By the name of the test."""
    return dict(map(json.loads, file.read_text().splitlines())) if file.exists() else {}
