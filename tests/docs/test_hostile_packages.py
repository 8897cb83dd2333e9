"""docs/llamastack/hostile-packages.md has every hostile package, with the outcome that the tests expect."""

from __future__ import annotations

from hostile_packages.catalogue import Outcome, packages
from hostile_packages.table import DOCUMENT, document


def test_hostile_packages_table_is_current() -> None:
    expected = [Outcome(one, one.case.code, named=bool(one.case.code)) for one in packages()]

    assert DOCUMENT.read_text() == document(expected), "out of date: make hostile-packages"


def test_hostile_package_is_listed_once() -> None:
    assert len({(one.kind, one.name) for one in packages()}) == len(packages())
