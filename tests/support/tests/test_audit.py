"""Entries of an audit log from some byte on, wherever that lies."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, cast

import pytest

from kubefoundry_local.audit_log import FinishedRequests, requests_by_user

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


class Growing(io.BytesIO):
    """An audit log that the API server writes to while it is read: more of it after each read."""

    written = 0

    def open(self, _: str) -> Growing:
        return self

    def readline(self, size: int | None = -1, /) -> bytes:
        before = self.tell()
        line = super().readline(max(0, self.written - before))
        self.written += 3
        return line


@pytest.mark.parametrize("written", range(len(LOG) + 1))
@pytest.mark.parametrize("start", [0, 1, LINE, LINE + 4])
def test_lines_written_while_reading_stay_whole(written: int, start: int) -> None:
    log = Growing(LOG)
    log.written = max(start, written)

    numbers = [entry["n"] for entry in requests_by_user(cast(Any, log), start)]

    first = -(-start // LINE)
    assert numbers == list(range(first, first + len(numbers)))


def test_repeated_reads_return_each_finished_request_once(tmp_path: Path) -> None:
    def line(number: int, stage: str = "ResponseComplete", user: str = "me") -> bytes:
        return json.dumps({"n": number, "stage": stage, "user": {"username": user}}).encode() + b"\n"

    log = tmp_path / "audit.log"
    log.write_bytes(line(0) + line(1, stage="ResponseStarted") + line(2, user="another") + line(3)[:-5])
    requests = FinishedRequests(log, "me")

    first = [entry["n"] for entry in requests.until_now()]
    with log.open("ab") as more:
        more.write(line(3)[-5:] + line(4))
    second = [entry["n"] for entry in requests.until_now()]

    assert (first, second) == ([0], [0, 3, 4])
