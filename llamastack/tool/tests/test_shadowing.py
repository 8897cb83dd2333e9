"""The distribution's package with a module is found however its list of files is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamastack_providers.shadowing import _packages_of


def installed(folder: Path, **lists: str) -> None:
    """PyYAML with these lists of files."""
    about = folder / "PyYAML-6.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: PyYAML\nVersion: 6.0\n")
    for name, text in lists.items():
        (about / name.replace("_", ".")).write_text(text)
    (folder / "yaml").mkdir()
    (folder / "yaml" / "__init__.py").write_text("")


@pytest.mark.parametrize(
    "lists",
    [
        {"RECORD": "yaml/__init__.py,,\n"},
        {"RECORD": "a.py,,\r\nyaml/__init__.py,,\r\n"},
        {"RECORD": './yaml/__init__.py,,\n"b,c.py",,\n'},
        {"RECORD": ".//yaml//__init__.py,,\n"},
        {"RECORD": '"yaml/__init__.py",,\n'},
        {"RECORD": '"ya"ml/__init__.py,,\n'},
        {"RECORD": "a.py,,\x0cyaml/__init__.py,,\n"},
        {"RECORD": "", "SOURCES_txt": "yaml/__init__.py\n"},
    ],
)
def test_it_is_found(tmp_path: Path, lists: dict[str, str]) -> None:
    installed(tmp_path, **lists)

    assert list(_packages_of([tmp_path], "yaml")) == ["pyyaml"]
    assert list(_packages_of([tmp_path], "json")) == []
