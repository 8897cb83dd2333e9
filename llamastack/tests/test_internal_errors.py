"""Tests an internal error of the operator: the CR's status and an Event report it, and other CRs are served."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_llamastack import workload
from kubefoundry_llamastack.names import LLSD
from kubefoundry_llamastack.render.request import Distribution
from support.llamastack_operator import operator_on
from support.wire import Asked, events, ok


def distribution(name: str) -> dict[str, Any]:
    return {
        "apiVersion": LLSD.api_version,
        "kind": LLSD.kind,
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "generation": 1,
            "resourceVersion": "5",
        },
        "spec": {"server": {"distribution": {"name": "starter"}}},
    }


def answer(request: Asked) -> web.Response:
    """Serve one CR that fails and one that does not. Store every apply."""
    if "watch" in request.query:
        return events(("BOOKMARK", {"metadata": {"resourceVersion": "5"}}))
    if request.method in ("PATCH", "POST"):
        stored = distribution(request.body["metadata"]["name"]) | request.body
        return ok({**stored, "metadata": {**distribution("x")["metadata"], **stored["metadata"]}})
    items = (
        [distribution("broken"), distribution("sound")] if request.path.endswith(f"/{LLSD.plural}") else []
    )
    return ok({"metadata": {"resourceVersion": "5"}, "items": items})


async def test_internal_error_is_in_status_and_event(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = workload.decide

    def faulty(cr: Distribution, *more: Any) -> workload.Workload:
        if cr.name == "broken":
            raise KeyError("spec")
        return decide(cr, *more)

    monkeypatch.setattr(workload, "decide", faulty)
    statuses: asyncio.Queue[Asked] = asyncio.Queue()
    noted: asyncio.Queue[Asked] = asyncio.Queue()

    def listening(request: Asked) -> web.Response:
        if request.path.endswith("/status"):
            statuses.put_nowait(request)
        elif request.path.endswith("/events"):
            noted.put_nowait(request)
        return answer(request)

    async with operator_on(listening):
        written: dict[str, Any] = {}
        while len(written) < 2:
            request = await statuses.get()
            written[request.body["metadata"]["name"]] = request.body["status"]
        event = await noted.get()
        while event.body["reason"] != "InternalError":
            event = await noted.get()

    (ready,) = [item for item in written["broken"]["conditions"] if item["type"] == "DeploymentReady"]
    assert (ready["status"], ready["reason"]) == ("False", "InternalError")
    assert "internal error: KeyError: 'spec'; what runs is left as it is" in ready["message"]
    assert written["broken"]["phase"] == "Failed"
    assert "InternalError" not in str(written["sound"])
    assert event.body["regarding"]["name"] == "broken"
    assert "internal error" in event.body["note"] and "KeyError: 'spec'" in event.body["note"]
