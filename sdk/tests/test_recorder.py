"""Events: each said once, about the object that it concerns."""

from __future__ import annotations

import asyncio
import re
import socket
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_sdk._api import formats
from kubefoundry_sdk._cluster import transport
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._runtime import recorder as recorder_module
from kubefoundry_sdk._runtime.recorder import NOTE, WAITING, Recorder
from support.waiting import SECONDS
from support.wire import Asked, ok, wire

ABOUT: dict[str, Any] = {
    "apiVersion": "kubefoundry.ai/v1alpha1",
    "kind": "ModelDeployment",
    "metadata": {"name": "m", "namespace": "n", "uid": "u", "resourceVersion": "7"},
}


async def sent(*received: tuple[dict[str, Any], str]) -> list[dict[str, Any]]:
    """Return the Events that the recorder sends for these objects and notes."""
    done = asyncio.Event()

    def answer(asked: Asked) -> web.Response:
        if asked.body["note"] == "last":
            done.set()
        return ok()

    async with wire(answer) as api:
        recorder = Recorder(api.client, component="test", instance="i")
        for about, note in (*received, (ABOUT, "last")):
            recorder.event(about, "Warning", "DriftDetected", note)
        sending = asyncio.create_task(recorder.run())
        async with asyncio.timeout(SECONDS):
            await done.wait()
        sending.cancel()
        await asyncio.wait([sending])
    return [asked.body for asked in api.asked][:-1]


async def test_event_is_repeated_for_other_texts_or_objects_only() -> None:
    another = {**ABOUT, "metadata": {**ABOUT["metadata"], "uid": "v"}}

    events = await sent((ABOUT, "a"), (ABOUT, "a"), (ABOUT, "b"), (another, "a"))

    assert [(event["regarding"]["uid"], event["note"]) for event in events] == [
        ("u", "a"),
        ("u", "b"),
        ("v", "a"),
    ]


@pytest.mark.parametrize("text", ["x" * 2000, "é" * 600], ids=["characters", "bytes"])
async def test_recorder_cuts_long_note(text: str) -> None:
    [event] = await sent((ABOUT, text))

    assert NOTE - 4 < len(event["note"].encode()) <= NOTE
    assert event["note"].endswith("…")


async def test_event_flood_affects_its_own_namespace_only() -> None:
    crowd = [
        ({**ABOUT, "metadata": {**ABOUT["metadata"], "namespace": "crowd"}}, str(n))
        for n in range(WAITING + 50)
    ]

    notes = [event["note"] for event in await sent((ABOUT, "mine"), *crowd, (ABOUT, "mine, too"))]

    assert notes[:4] == ["mine", "0", "mine, too", "1"]


async def test_recorder_sends_queued_events_when_process_ends() -> None:
    """The status is already written, so no later reconcile sends these Events."""
    async with wire(lambda asked: ok()) as api:
        recorder = Recorder(api.client, component="test", instance="i")
        sending = asyncio.create_task(recorder.run())
        await asyncio.sleep(0)
        for note in ("a", "b", "c"):
            recorder.event(ABOUT, "Warning", "DriftDetected", note)

        sending.cancel()
        await asyncio.wait([sending])

    assert sending.cancelled()
    assert [asked.body["note"] for asked in api.asked] == ["a", "b", "c"]


async def test_recorder_ends_without_response_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recorder_module, "LAST", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        who = Credentials(f"http://127.0.0.1:{port}", None, lambda: "")
        async with Client(who, user_agent="test") as client:
            recorder = Recorder(client, component="test", instance="i")
            sending = asyncio.create_task(recorder.run())
            recorder.event(ABOUT, "Warning", "DriftDetected", "a")
            await asyncio.sleep(0)

            sending.cancel()
            async with asyncio.timeout(transport.DEADLINE / 2):
                await asyncio.wait([sending])

    assert sending.cancelled()


@pytest.mark.parametrize(
    "name", ["x" * 199 + "-" + "y" * 20, "x" * 199 + "." + "y" * 20, "x" * 198 + "-." + "y" * 9, "m"]
)
async def test_event_name_is_valid_when_object_name_is_long(name: str) -> None:
    [event] = await sent(({**ABOUT, "metadata": {**ABOUT["metadata"], "name": name}}, "a"))

    event_name = event["metadata"]["name"]
    assert re.fullmatch(formats.DNS_SUBDOMAIN, event_name) and len(event_name) <= 253
    assert event["regarding"]["name"] == name


@pytest.mark.parametrize("note", ["\ud83d", "😀" * 400, "\u2028\x7f"])
async def test_recorder_sends_note_of_any_characters(note: str) -> None:
    [event] = await sent((ABOUT, note))

    assert len(event["note"].encode()) <= NOTE
