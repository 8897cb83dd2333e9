"""The events that an open page gets from its watch."""

from __future__ import annotations

import pytest
from aiohttp import web

from kubefoundry_dashboard import live
from support.wire import Asked, events, refusal, wire

ADDED = {"metadata": {"name": "m", "resourceVersion": "6"}}


@pytest.mark.parametrize(
    ("lasts", "versions", "expected"),
    [
        pytest.param(0, ["5", "6"], ["ADDED", "stale"], id="watch is resumed after its time"),
        pytest.param(300, ["5"], ["ADDED", "stale"], id="watch that ended early is stale"),
    ],
)
async def test_watch_is_resumed_only_after_its_time(
    lasts: int, versions: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LASTS", lasts)
    monkeypatch.setattr(live, "AGAIN", 0.001)
    responses = [events(("ADDED", ADDED)), refusal(410, "Expired")]

    def answer(request: Asked) -> web.Response:
        return responses.pop(0)

    async with wire(answer) as server:
        received = [event async for event, _ in live.watch_models(server.client, None, "5", None)]

    assert received == expected
    assert [request.query["resourceVersion"] for request in server.asked] == versions
