"""Failed work is restarted and ends no other work. Its log lines are limited."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._runtime import supervision
from kubefoundry_sdk._runtime.backoff import Backoff
from kubefoundry_sdk._runtime.supervision import supervise
from support.waiting import SECONDS


def deep(level: int) -> int:
    return deeper(level + 1)


def deeper(level: int) -> int:
    return deep(level + 1)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "PAUSES", Backoff(0.001, 0.001))


@pytest.mark.parametrize(
    "error",
    [
        RecursionError("too deep"),
        KeyError("metadata"),
        OverflowError("34"),
        ExceptionGroup("g", [KeyError()]),
    ],
)
async def test_work_that_fails_is_begun_again(error: Exception, quick: None) -> None:
    begun = 0

    async def work() -> None:
        nonlocal begun
        begun += 1
        if begun < 4:
            raise error

    async with asyncio.timeout(SECONDS):
        await supervise("work", work)

    assert begun == 4


async def test_pauses_grow_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def slept(pause: float) -> None:
        pauses.append(pause)

    monkeypatch.setattr("asyncio.sleep", slept)
    monkeypatch.setattr("random.uniform", lambda a, b: 1.0)

    async def work() -> None:
        if len(pauses) < 2000:
            raise KeyError("metadata")

    await supervise("work", work)

    assert pauses[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert set(pauses[6:]) == {60}


async def test_supervised_task_ends_when_cancelled(quick: None) -> None:
    task = asyncio.create_task(supervise("work", asyncio.Event().wait))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_is_logged_is_bounded(form: str) -> None:
    record = logging.LogRecord("x", logging.ERROR, "x", 1, "%s", ("y" * 400_000,), None)
    try:
        deep(0)
    except RecursionError as error:
        record.exc_info = (type(error), error, error.__traceback__)
    formatter = logs._Json() if form == "json" else logs._Text()

    written = formatter.format(record)

    assert "characters left out" in written and "RecursionError" in written
    assert len(written) < 1.5 * (logs.MESSAGE + logs.EXCEPTION)
