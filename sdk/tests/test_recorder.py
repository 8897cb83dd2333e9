"""Events: each said once, about the object that it concerns."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_sdk.runtime.recorder import NOTE, Recorder
from support.waiting import SECONDS
from support.wire import Asked, ok, wire

ABOUT: dict[str, Any] = {
    "apiVersion": "kubefoundry.ai/v1alpha1",
    "kind": "ModelDeployment",
    "metadata": {"name": "m", "namespace": "n", "uid": "u", "resourceVersion": "7"},
}


async def sent(*told: tuple[dict[str, Any], str]) -> list[dict[str, Any]]:
    """The Events that are made where these notes about these objects are told."""
    done = asyncio.Event()

    def answer(asked: Asked) -> web.Response:
        if asked.body["note"] == "last":
            done.set()
        return ok()

    async with wire(answer) as made:
        recorder = Recorder(made.client, component="test", instance="i")
        for about, note in (*told, (ABOUT, "last")):
            recorder.event(about, "Warning", "DriftDetected", note)
        sending = asyncio.create_task(recorder.run())
        async with asyncio.timeout(SECONDS):
            await done.wait()
        sending.cancel()
    return [asked.body for asked in made.asked][:-1]


async def test_the_same_is_said_once_and_another_thing_or_of_another_again() -> None:
    another = {**ABOUT, "metadata": {**ABOUT["metadata"], "uid": "v"}}

    made = await sent((ABOUT, "a"), (ABOUT, "a"), (ABOUT, "b"), (another, "a"))

    assert [(event["regarding"]["uid"], event["note"]) for event in made] == [
        ("u", "a"),
        ("u", "b"),
        ("v", "a"),
    ]


@pytest.mark.parametrize("text", ["x" * 2000, "é" * 600], ids=["characters", "bytes"])
async def test_a_note_that_is_too_long_is_cut(text: str) -> None:
    [event] = await sent((ABOUT, text))

    assert NOTE - 4 < len(event["note"].encode()) <= NOTE
    assert event["note"].endswith("…")
