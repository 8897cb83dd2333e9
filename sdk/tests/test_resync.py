"""Every object has its turn again within hours, spread and never in a burst."""

from __future__ import annotations

import asyncio

import pytest

from kubefoundry_sdk._runtime.resync import PERIOD, resync
from kubefoundry_sdk._runtime.store import Key


@pytest.mark.parametrize("count", [0, 1, 60, 1000])
async def test_each_is_added_once_a_round_spread_over_the_period(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    added: list[Key] = []
    rounds = 0

    async def slept(pause: float) -> None:
        pauses.append(pause)

    def keys() -> list[Key]:
        nonlocal rounds
        rounds += 1
        if rounds > 2:
            raise asyncio.CancelledError
        return [("n", str(number)) for number in range(count)]

    monkeypatch.setattr("asyncio.sleep", slept)
    with pytest.raises(asyncio.CancelledError):
        await resync(keys, added.append)

    assert added == 2 * [("n", str(number)) for number in range(count)]
    assert sum(pauses) <= 2 * 1.5 * PERIOD
    assert sum(pauses) >= 2 * 0.5 * PERIOD
    assert min(pauses) >= 0.5 * PERIOD / max(1, count)
    assert len(set(pauses)) > count, "by chance a little earlier or later"
