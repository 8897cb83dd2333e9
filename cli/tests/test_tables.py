"""Tables on terminals, narrow ones too, and with characters of any width."""

from __future__ import annotations

import pytest

from kubefoundry_cli import output

HEAD = ("PROVIDER", "READ", "RULE")
ROWS = [("kaito", "gpu", "x" * 90), ("direct", "", "(no rules)")]
COLUMNS = ["PROVIDER   READ   RULE", f"kaito      gpu    {'x' * 90}", "direct            (no rules)"]
BLOCKS = [
    *("PROVIDER: kaito", "READ:     gpu", f"RULE:     {'x' * 90}", ""),
    *("PROVIDER: direct", "READ:", "RULE:     (no rules)"),
]


@pytest.mark.parametrize(
    ("terminal", "columns", "lines"),
    [
        pytest.param(True, 60, BLOCKS, id="much too narrow"),
        pytest.param(True, 79, BLOCKS, id="below the usual width"),
        pytest.param(True, 80, COLUMNS, id="usual width breaks ends of lines"),
        pytest.param(True, 120, COLUMNS, id="wide enough"),
        pytest.param(False, 60, COLUMNS, id="pipe"),
    ],
)
def test_wide_table_is_blocks_on_a_narrow_terminal(
    terminal: bool,
    columns: int,
    lines: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)

    output.table(HEAD, ROWS)

    assert capsys.readouterr().out.splitlines() == lines


def test_table_without_rows_keeps_its_head(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    output.table(HEAD, [])

    assert capsys.readouterr().out.splitlines() == [COLUMNS[0]]


@pytest.mark.parametrize(
    ("cell", "width"),
    [
        pytest.param("模型", 4, id="two Chinese characters"),
        pytest.param("\uff4d\uff44", 4, id="two fullwidth letters"),
        pytest.param("cafe\u0301", 4, id="accent of its own"),
        pytest.param("caf\u00e9", 4, id="letter with an accent"),
        pytest.param("a\u200db", 3, id="joiner, shown as a space"),
    ],
)
def test_columns_align_beside_characters_of_any_width(
    cell: str, width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    output.table(("ID", "B"), [(cell, "x"), ("m", "y")])

    head, row, _ = capsys.readouterr().out.splitlines()
    assert row == f"{output.clean(cell)}{output.GAP}x"
    assert head == f"{'ID':{width}}{output.GAP}B"
