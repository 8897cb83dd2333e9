"""Tests that the distribution's package with a module is found, however its list of files is written."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llamastack_providers.shadowing import _packages_of


def installed(folder: Path, **lists: str | bytes) -> None:
    """Install PyYAML with these lists of files, and its metadata if there are others."""
    about = folder / "PyYAML-6.0.dist-info"
    about.mkdir()
    lists = {"METADATA": "Metadata-Version: 2.1\nName: PyYAML\nVersion: 6.0\n", **lists}
    for name, text in lists.items():
        content = text if isinstance(text, bytes) else text.encode()
        (about / name.replace("_", ".")).write_bytes(content)
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
def test_shadowed_module_is_found_in_any_valid_record(tmp_path: Path, lists: dict[str, str]) -> None:
    installed(tmp_path, **lists)

    assert list(_packages_of([tmp_path], "yaml")) == ["pyyaml"]
    assert list(_packages_of([tmp_path], "json")) == []


ODD: Final = st.one_of(
    st.binary(max_size=60),
    st.lists(
        st.lists(
            st.sampled_from(
                ["yaml/__init__.py", "", "x", "-1", "sha256=", "\x00", '"', "\ud800", "9" * 5000]
            ),
            max_size=5,
        ),
        max_size=5,
    ).map(lambda rows: "\n".join(map(",".join, rows)).encode(errors="surrogatepass")),
)
"""Lists of files that no installer writes."""


@settings(max_examples=50)
@given(record=ODD, metadata=ODD)
@example(record=b"yaml/__init__.py,,\n\n", metadata=b"Name: PyYAML\n")
@example(record=b"yaml/__init__.py,,many\n", metadata=b"Name: PyYAML\n")
@example(record=b"yaml/__init__.py,,,,\n", metadata=b"Name: PyYAML\n")
@example(record=b"yaml/__init__.py,,\n\xff", metadata=b"Name: PyYAML\n")
@example(record=b"yaml/__init__.py,,\n", metadata=b"Name: \xff\n")
@example(record=b'"yaml' + 140_000 * b"x", metadata=b"Name: PyYAML\n")
def test_shadowing_handles_any_file_list(record: bytes, metadata: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        installed(Path(folder), RECORD=record, METADATA=metadata)

        assert set(_packages_of([Path(folder)], "yaml")) <= {"pyyaml"}
