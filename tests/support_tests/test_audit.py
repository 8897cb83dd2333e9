"""Entries of an audit log from some byte on, wherever that lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubefoundry_local.audit_log import requests_by_user

LOG = b'{"n": 0}\n{"n": 1}\n{"n": 2}\n{"n": 3'
LINE = len(b'{"n": 0}\n')


@pytest.mark.parametrize(
    ("start", "entries"),
    [
        pytest.param(0, [0, 1, 2], id="from the beginning"),
        pytest.param(LINE, [1, 2], id="between two lines"),
        pytest.param(LINE + 1, [2], id="after the first byte of a line"),
        pytest.param(2 * LINE - 1, [2], id="before the last byte of a line"),
        pytest.param(3 * LINE, [], id="where a line is being written"),
        pytest.param(3 * LINE + 2, [], id="within the line being written"),
    ],
)
def test_lines_that_begin_there_or_later_are_read(tmp_path: Path, start: int, entries: list[int]) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(LOG)

    assert [entry["n"] for entry in requests_by_user(log, start)] == entries
