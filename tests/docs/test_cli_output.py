"""docs/cli-output.schema.json is made of the types with which commands print."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = runpy.run_path(str(DOCS / "cli_output.py"))


def test_cli_output_schema_is_current() -> None:
    assert (DOCS / "cli-output.schema.json").read_text(encoding="utf-8") == PAGES["document"](), "make docs"
