"""docs/compatibility.md is what the providers do today with the CRDs of ../shared."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_sdk._provider.upstream_kind import Schema
from support.upstream import PROVIDERS, requires_shared

pytestmark = [pytest.mark.upstream, requires_shared]

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "compatibility.py"))


def test_compatibility_document_is_current(generator: dict[str, Any]) -> None:
    assert (DOCS / "compatibility.md").read_text() == generator["compatibility"](), "out of date: make docs"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_release_is_degraded_when_a_field_is_refused(generator: dict[str, Any], provider: str) -> None:
    """What the InferenceProviderConfig says (`Schema.lost`) and what is refused are written in two places."""
    for release in generator["releases"](provider):
        assert isinstance(release.schema, Schema), release.name
        assert bool(release.schema.lost) == bool(release.lost), (release.name, release.lost)
