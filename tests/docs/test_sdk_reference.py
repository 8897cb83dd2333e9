"""docs/sdk-reference.md is what its generator makes today, and has every public name."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import kubefoundry_sdk

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_sdk_reference_is_current() -> None:
    spec = importlib.util.spec_from_file_location("sdk_reference", DOCS / "sdk.py")
    assert spec and spec.loader
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)

    assert (DOCS / "sdk-reference.md").read_text() == generator.reference(), "run make docs"


def test_sdk_reference_lists_every_public_name() -> None:
    text = (DOCS / "sdk-reference.md").read_text()

    for name in kubefoundry_sdk.__all__:
        assert f"\n### {name}\n" in text
    for row in ("| `provider` | `ProviderSpec or None`", "| `resources.gpu` | `GpuSpec or None`"):
        assert row in text


def test_guide_lists_every_moved_name() -> None:
    rows = [
        line for line in (DOCS / "writing-a-provider.md").read_text().splitlines() if line.startswith("| `")
    ]

    for name, place in kubefoundry_sdk._MOVED.items():
        module, _, new = place.partition(":")
        (row,) = [row for row in rows if row.startswith(f"| `kubefoundry_sdk.{module}` | ")]
        assert (f"`{name}` is `{new}`" if new else f"`{name}`") in row
