"""An error of the operator itself: the CR's status and an Event say so, and the other CRs are served."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_llamastack import workload
from kubefoundry_llamastack.controller import Controller
from kubefoundry_llamastack.names import LLSD
from kubefoundry_llamastack.render.request import Distribution, Settings
from kubefoundry_sdk.runtime import options
from kubefoundry_sdk.runtime.process import Process
from support.wire import Asked, events, ok, wire


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


def answer(asked: Asked) -> web.Response:
    """One CR that fails and one that does not; nothing else is there, and every apply is stored."""
    if "watch" in asked.query:
        return events(("BOOKMARK", {"metadata": {"resourceVersion": "5"}}))
    if asked.method in ("PATCH", "POST"):
        stored = distribution(asked.body["metadata"]["name"]) | asked.body
        return ok({**stored, "metadata": {**distribution("x")["metadata"], **stored["metadata"]}})
    items = [distribution("broken"), distribution("sound")] if asked.path.endswith(f"/{LLSD.plural}") else []
    return ok({"metadata": {"resourceVersion": "5"}, "items": items})


async def test_it_is_in_the_status_and_in_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = workload.decide

    def faulty(cr: Distribution, *more: Any) -> workload.Workload:
        if cr.name == "broken":
            raise KeyError("spec")
        return decide(cr, *more)

    monkeypatch.setattr(workload, "decide", faulty)
    parser = options.parser("kubefoundry-llamastack", "")
    parser.add_argument("--openshift-anyuid", default=False)
    chosen = parser.parse_args(["--health-port=0", "--metrics-port=0"])
    stop = asyncio.Event()
    statuses: asyncio.Queue[Asked] = asyncio.Queue()
    noted: asyncio.Queue[Asked] = asyncio.Queue()

    def listening(asked: Asked) -> web.Response:
        if asked.path.endswith("/status"):
            statuses.put_nowait(asked)
        elif asked.path.endswith("/events"):
            noted.put_nowait(asked)
        return answer(asked)

    async with wire(listening) as made, asyncio.timeout(30), asyncio.TaskGroup() as group:
        process = Process("kubefoundry-llamastack", chosen, made.client)
        Controller(process, Settings())
        group.create_task(process.run(stop, needs=LLSD.api_version))

        written: dict[str, Any] = {}
        while len(written) < 2:
            asked = await statuses.get()
            written[asked.body["metadata"]["name"]] = asked.body["status"]
        event = await noted.get()
        while event.body["reason"] != "InternalError":
            event = await noted.get()
        stop.set()

    (ready,) = [item for item in written["broken"]["conditions"] if item["type"] == "DeploymentReady"]
    assert (ready["status"], ready["reason"]) == ("False", "InternalError")
    assert "internal error: KeyError: 'spec'; what runs is left as it is" in ready["message"]
    assert written["broken"]["phase"] == "Failed"
    assert "InternalError" not in str(written["sound"])
    assert event.body["regarding"]["name"] == "broken"
    assert "internal error" in event.body["note"] and "KeyError: 'spec'" in event.body["note"]
