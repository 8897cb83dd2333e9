"""Core and selector know no provider (contract §1)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = re.compile(
    r"kaito|dynamo|kuberay|\bray\b|workspace|graphdeployment|rayservice|nvidia\.com/v", re.IGNORECASE
)


@pytest.mark.parametrize("component", ["core", "selector"])
def test_no_provider_is_named(component: str) -> None:
    sources = [path for path in (ROOT / component / "src").rglob("*") if path.suffix in (".py", ".toml")]

    named = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if NAMES.search(line)
    ]

    assert sources
    assert named == []
