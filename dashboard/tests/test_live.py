"""What an open page learns of its watch."""

from __future__ import annotations

import pytest
from aiohttp import web

from kubefoundry_dashboard import live
from support.wire import Asked, events, refusal, wire

ADDED = {"metadata": {"name": "m", "resourceVersion": "6"}}


@pytest.mark.parametrize(
    ("lasts", "asked", "told"),
    [
        pytest.param(0, ["5", "6"], ["ADDED", "stale"], id="one whose time is over is resumed"),
        pytest.param(300, ["5"], ["ADDED", "stale"], id="one that ended early may have lost its history"),
    ],
)
async def test_a_watch_that_ends(
    lasts: int, asked: list[str], told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LASTS", lasts)
    monkeypatch.setattr(live, "AGAIN", 0.001)
    left = [events(("ADDED", ADDED)), refusal(410, "Expired")]

    def answer(request: Asked) -> web.Response:
        return left.pop(0)

    async with wire(answer) as made:
        found = [event async for event, _ in live.watched(made.client, None, "5", None)]

    assert found == told
    assert [request.query["resourceVersion"] for request in made.asked] == asked
