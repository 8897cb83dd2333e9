"""Equal writes to one object are limited."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import behind
from kubefoundry_sdk._cluster.errors import Repeated
from kubefoundry_sdk._cluster.repetition import BURST, EVERY, Repetition
from support.wire import Asked, ok, refusal, wire

REQUEST = "PATCH /apis/kubefoundry.ai/v1alpha1/namespaces/n/modeldeployments/m/status"


def body(message: str, version: str = "1") -> dict[str, Any]:
    return {"metadata": {"name": "m", "resourceVersion": version}, "status": {"message": message}}


@given(st.lists(st.floats(0.0, 5.0), min_size=200, max_size=400))
def test_equal_writes_have_a_rate(pauses: list[float]) -> None:
    now, sent = 0.0, 0
    repetition = Repetition(lambda: now)
    for number, pause in enumerate(pauses):
        now += pause
        try:
            repetition.admit(REQUEST, None, body("a", str(number)))()
            sent += 1
        except Repeated:
            pass

    assert sent <= BURST + now / EVERY + 1


def test_other_write_is_sent_when_one_is_held_back() -> None:
    repetition = Repetition(lambda: 0.0)
    for _ in range(BURST):
        repetition.admit(REQUEST, None, body("a"))()
    with pytest.raises(Repeated, match="does not last"):
        repetition.admit(REQUEST, None, body("a"))

    repetition.admit(REQUEST, None, body("b"))
    repetition.admit(f"{REQUEST}2", None, body("a"))


def test_json_patches_are_equal_whatever_they_test() -> None:
    repetition = Repetition(lambda: 0.0)

    def patch(version: int) -> list[dict[str, Any]]:
        return [
            {"op": "test", "path": "/metadata/resourceVersion", "value": str(version)},
            {"op": "remove", "path": "/status/endpoint"},
        ]

    for version in range(BURST):
        repetition.admit(REQUEST, None, patch(version))()
    with pytest.raises(Repeated):
        repetition.admit(REQUEST, None, patch(BURST))


async def test_refused_writes_are_not_counted() -> None:
    def answer(asked: Asked) -> web.Response:
        failing = len(api.asked) <= 2 * BURST
        return refusal(503, "ServiceUnavailable") if failing else ok({"metadata": {"name": "m"}})

    async with wire(answer) as api:
        client = behind(api.client, lambda: None, repetition=Repetition(lambda: 0.0))
        sent = {"apiVersion": "kubefoundry.ai/v1alpha1", "metadata": {"name": "m", "namespace": "n"}}
        for _ in range(2 * BURST):
            with pytest.raises(Exception, match="503"):
                await client.apply(MODEL_DEPLOYMENTS, sent, manager="t")

        assert await client.apply(MODEL_DEPLOYMENTS, sent, manager="t") == {"metadata": {"name": "m"}}


async def test_dry_runs_are_not_counted() -> None:
    def answer(asked: Asked) -> web.Response:
        return ok({"metadata": {"name": "m"}})

    async with wire(answer) as api:
        client = behind(api.client, lambda: None, repetition=Repetition(lambda: 0.0))
        sent = {"apiVersion": "kubefoundry.ai/v1alpha1", "metadata": {"name": "m", "namespace": "n"}}
        for _ in range(BURST):
            await client.apply(MODEL_DEPLOYMENTS, sent, manager="t")
        with pytest.raises(Repeated):
            await client.apply(MODEL_DEPLOYMENTS, sent, manager="t")

        for _ in range(2 * BURST):
            await client.apply(MODEL_DEPLOYMENTS, sent, manager="t", dry_run=True)
        assert len(api.asked) == 3 * BURST
