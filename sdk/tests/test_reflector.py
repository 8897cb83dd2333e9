"""A sink has the objects of a kind, also after failures of the watch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._cluster import reflector
from kubefoundry_sdk._cluster.reflector import reflect
from support.waiting import SECONDS
from support.wire import Asked, Wire, events, ok, refusal, wire

MODELS = Kind("acme.io", "v1", "models", "Model")
HTML = web.Response(text="<html>")
GONE = {"kind": "Status", "code": 410, "reason": "Expired"}


def model(version: str) -> dict[str, Any]:
    return {"metadata": {"name": "m", "resourceVersion": version}}


def listing(*items: dict[str, Any], version: str) -> web.Response:
    return ok({"metadata": {"resourceVersion": version}, "items": list(items)})


class Quiet(web.Response):
    """A watch that sends nothing for longer than the reflector waits."""

    async def write_eof(self, data: bytes = b"") -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await asyncio.Event().wait()


class Sink:
    """Notes what comes, as the word and the resource version."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, ...]] = []

    def replace(self, objects: Iterator[dict[str, Any]], resource_version: str, *, rewound: bool) -> None:
        word = "all again" if rewound else "all"
        self.seen.append((word, *(obj["metadata"]["resourceVersion"] for obj in objects)))

    def put(self, obj: dict[str, Any]) -> None:
        self.seen.append(("put", obj["metadata"]["resourceVersion"]))

    def remove(self, obj: dict[str, Any]) -> None:
        self.seen.append(("remove", obj["metadata"]["resourceVersion"]))


async def reflected(
    answers: Sequence[web.Response],
    monkeypatch: pytest.MonkeyPatch,
    *,
    lasts: int = 0,
    optional: bool = False,
) -> tuple[list[str], Sink, Wire]:
    """Runs until every answer is used: what was asked (`list`, or the version that was watched from).

    lasts: the seconds for which a watch is asked to last; each ends at once.
    optional: whether the kind may be forbidden; the sink notes it.
    """
    monkeypatch.setattr(reflector, "WATCH_SECONDS", (lasts, lasts))
    monkeypatch.setattr(reflector, "BACKOFF", (0.001,))
    monkeypatch.setattr(reflector, "BLIND", 0.001)
    monkeypatch.setattr(reflector, "REFUSED", (0.001,))
    left, used, sink = list(answers), asyncio.Event(), Sink()

    def answer(asked: Asked) -> web.Response:
        if not left:
            used.set()
            return refusal(500, "InternalError")
        given = left.pop(0)
        # A response is sent once; this one is used by several cases.
        return web.Response(text="<html>") if given is HTML else given

    async with wire(answer) as api:
        refused = (lambda: sink.seen.append(("refused",))) if optional else None
        task = asyncio.create_task(reflect(api.client, MODELS, sink, refused=refused))
        async with asyncio.timeout(SECONDS):
            await used.wait()
        task.cancel()
    asked = [
        "list" if "watch" not in request.query else request.query["resourceVersion"] for request in api.asked
    ]
    return asked[: len(answers) + 1], sink, api


@pytest.mark.parametrize(
    ("answers", "asked", "seen"),
    [
        pytest.param(
            [listing(model("3"), version="5"), events(("MODIFIED", model("7")), ("DELETED", model("8")))],
            ["list", "5", "8"],
            [("all", "3"), ("put", "7"), ("remove", "8")],
            id="a watch whose time is over is resumed where it ended",
        ),
        pytest.param(
            [listing(version="5"), events(("BOOKMARK", model("9")))],
            ["list", "5", "9"],
            [("all",)],
            id="a bookmark moves the place",
        ),
        pytest.param(
            [listing(model("3"), version="5"), events(("ERROR", GONE)), listing(version="9")],
            ["list", "5", "list", "9"],
            [("all", "3"), ("all",)],
            id="a gap is closed by a listing",
        ),
        pytest.param(
            [listing(model("3"), version="5"), refusal(410, "Expired"), listing(version="9")],
            ["list", "5", "list", "9"],
            [("all", "3"), ("all",)],
            id="a watch refused as too old",
        ),
        pytest.param(
            [listing(version="5"), refusal(404, "NotFound"), listing(version="9")],
            ["list", "5", "list", "9"],
            [("all",), ("all",)],
            id="a kind that is not served any more",
        ),
        pytest.param(
            [listing(version="5"), refusal(500, "InternalError"), events(("ADDED", model("6")))],
            ["list", "5", "5", "6"],
            [("all",), ("put", "6")],
            id="a fault that passes costs no listing",
        ),
        pytest.param(
            [
                listing(version="5"),
                refusal(500, "InternalError"),
                refusal(500, "InternalError"),
                listing(model("4"), version="6"),
            ],
            ["list", "5", "5", "list", "6"],
            [("all",), ("all", "4")],
            id="one that lasts does: the server may have been restored meanwhile",
        ),
        pytest.param(
            [listing(version="5"), refusal(503, "ServiceUnavailable"), listing(model("3"), version="6")],
            ["list", "5", "list", "6"],
            [("all",), ("all", "3")],
            id="one that a proxy reports costs one: the server behind it may have lost its history",
        ),
        pytest.param(
            [listing(version="5"), HTML, listing(model("3"), version="6"), events(("ADDED", model("7")))],
            ["list", "5", "list", "6", "7"],
            [("all",), ("all", "3"), ("put", "7")],
            id="so does a lost connection, however long the history is by now",
        ),
        pytest.param(
            [
                listing(model("8"), version="9"),
                HTML,
                listing(model("3"), version="5"),
            ],
            ["list", "9", "list", "5"],
            [("all", "8"), ("all again", "3")],
            id="a history that is shorter than before",
        ),
        pytest.param(
            [listing(model("8"), version="9"), events(("BOOKMARK", model("6"))), listing(version="6")],
            ["list", "9", "list", "6"],
            [("all", "8"), ("all again",)],
            id="and one of which a bookmark tells",
        ),
        pytest.param(
            [
                listing(version="5"),
                refusal(429, "TooManyRequests", retry_after=86400),
                events(("ADDED", model("6"))),
            ],
            ["list", "5", "5", "6"],
            [("all",), ("put", "6")],
            id="a server that asks to come again tomorrow is asked sooner",
        ),
        pytest.param(
            [HTML, refusal(403, "Forbidden"), listing(version="5")],
            ["list", "list", "list", "5"],
            [("all",)],
            id="a listing that is none is asked for again",
        ),
        pytest.param(
            [listing(version="5"), events(("ADDED", {"metadata": {"name": "bad"}}), ("ADDED", model("7")))],
            ["list", "5", "7"],
            [("all",), ("put", "7")],
            id="an object that the sink cannot take in is left out",
        ),
    ],
)
async def test_what_is_asked_and_reported(
    answers: list[web.Response],
    asked: list[str],
    seen: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests, sink, _ = await reflected(answers, monkeypatch)

    assert requests == asked
    assert sink.seen == seen


@pytest.mark.parametrize("lasts", [60, 600])
async def test_watch_that_ends_early_is_not_resumed(lasts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [listing(version="5"), events(("ADDED", model("6"))), listing(model("4"), version="7")]

    requests, sink, _ = await reflected(answers, monkeypatch, lasts=lasts)

    # The server that ended it has stopped, and what has come back may have another history.
    assert requests == ["list", "5", "list", "7"]
    assert sink.seen == [("all",), ("put", "6"), ("all", "4")]


async def test_where_only_listing_is_permitted_it_stays_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    forbidden = [refusal(403, "Forbidden") for _ in range(5)]
    answers = [
        *(listing(model("3"), version="5"), forbidden[0], forbidden[1]),
        *(listing(version="6"), forbidden[2]),
        *(forbidden[3], listing(version="7"), forbidden[4]),
        *(listing(model("8"), version="8"), events(("ADDED", model("9"))), events(("ADDED", model("9")))),
    ]

    requests, sink, _ = await reflected(answers, monkeypatch, optional=True)

    assert requests == ["list", "5", "5", "list", "6", "list", "list", "7", "list", "8", "8", "9"]
    assert sink.seen == [("all", "3"), ("refused",), ("all", "8"), ("put", "9")]


async def test_quiet_watch_is_resumed_without_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reflector, "SILENCE", 0.05)
    caplog.set_level(logging.INFO, reflector.__name__)
    quiet = [listing(version="5"), Quiet(), listing(version="5"), Quiet(), listing(version="5"), Quiet()]

    requests, sink, _ = await reflected(quiet, monkeypatch)

    assert requests == ["list", "5", "list", "5", "list", "5", "list"]
    assert sink.seen == [("all",)]
    assert [entry.message for entry in caplog.records if entry.name == reflector.__name__] == []


@pytest.mark.parametrize("code", [302, 404, 405, 429, 500, 502, 503, 504])
@pytest.mark.parametrize("body", ["", "<html>", "{}"])
@pytest.mark.parametrize("is_watch", [False, True])
async def test_reflector_waits_as_a_load_balancer_asks(
    code: int, body: str, is_watch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "BACKOFF", (0.001,))
    times: list[float] = []
    repeated = asyncio.Event()

    def answer(asked: Asked) -> web.Response:
        if is_watch and not times and "watch" not in asked.query:
            return listing(version="5")
        times.append(asyncio.get_running_loop().time())
        if len(times) > 1:
            repeated.set()
        return web.Response(status=code, text=body, headers={"Retry-After": "0.1", "Location": "/"})

    async with wire(answer) as api:
        task = asyncio.create_task(reflect(api.client, MODELS, Sink()))
        async with asyncio.timeout(SECONDS):
            await repeated.wait()
        task.cancel()

    assert times[1] - times[0] >= 0.1
