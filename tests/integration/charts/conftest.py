"""Helm for the tests of the charts."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.helm import Helm, build


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """Return helm without a cluster."""
    return Helm(build(), tmp_path)
