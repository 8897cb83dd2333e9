"""The list of behaviours, and what a run of tests says of them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
LIST: Final = Path(__file__).with_name("list.yaml")

Outcome = Literal["passed", "failed", "skipped", "not run"]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """says: what is promised. tests: as pytest calls them, parameters where only these are meant."""

    section: str
    says: str
    tests: tuple[str, ...]


def behaviours() -> list[Behaviour]:
    """In the order of the file."""
    return [
        Behaviour(part["section"], entry["says"], tuple(entry["tests"]))
        for part in yaml.safe_load(LIST.read_text(encoding="utf-8"))
        for entry in part["behaviours"]
    ]


def outcome(behaviour: Behaviour, reported: Mapping[str, Outcome]) -> tuple[Outcome, int]:
    """The worst of the outcomes of its tests, every parameter counted, and how many passed.

    reported: by the name of each test that was run.
    """
    found: list[Outcome] = []
    for test in behaviour.tests:
        meant = [said for name, said in reported.items() if name == test or name.startswith(f"{test}[")]
        found += meant or ["not run"]
    worst: tuple[Outcome, ...] = ("failed", "not run", "skipped")
    return next((said for said in worst if said in found), "passed"), found.count("passed")


def is_defined(test: str) -> bool:
    """Check whether the file of a test's name defines a function of that name. Ignore parameters."""
    file, _, function = test.partition("::")
    path = ROOT / file
    if not path.is_file():
        return False
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function.partition("[")[0]
        for node in ast.parse(path.read_text(encoding="utf-8")).body
    )
