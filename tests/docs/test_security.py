"""Every threat in docs/security.md names the tests that see what stops it, and they exist."""

from __future__ import annotations

import re

import pytest

from behaviours.catalogue import ROOT, is_defined

TABLE = (
    (ROOT / "docs" / "security.md")
    .read_text()
    .partition("## Who may influence what")[2]
    .partition("\n## ")[0]
)
ROWS = [line.strip("|").split("|") for line in TABLE.splitlines() if line.startswith("| ")][1:]
FOLDERS = re.compile(r"`kubectl apply -k (manifests/[^`]+)`")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1].strip())
def test_security_row_names_existing_tests(row: list[str]) -> None:
    _, what, stops, seen = row
    tests = re.findall(r"`([^`]+\.py::[^`]+)`", seen)

    assert what.strip()
    assert stops.strip()
    assert tests
    assert [test for test in tests if not is_defined(test)] == []


def test_security_table_names_the_actor_first() -> None:
    assert len(ROWS) > 10
    assert ROWS[0][0].strip()


def test_security_page_names_existing_manifests() -> None:
    named = FOLDERS.findall((ROOT / "docs" / "security.md").read_text())

    assert named
    assert [folder for folder in named if not (ROOT / folder / "kustomization.yaml").is_file()] == []
