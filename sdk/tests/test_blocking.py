"""A provider whose functions wait for another program does not hold up the event loop."""

from __future__ import annotations

import asyncio
import copy
import threading
from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.contract import Deployment, Endpoint, Observation, Replicas
from kubefoundry_sdk._provider.reconcile import observation
from kubefoundry_sdk._provider.reconcile.report import Report
from kubefoundry_sdk._provider.watch.upstream import Upstream
from support.contexts import UNUSED, context
from support.plans import deployment, planned, provider

SERVES = Observation("Running", "DeploymentReady", "up", Replicas(1, 1, 1), Endpoint("m", 80))


def live_model() -> dict[str, Any]:
    meta = {"namespace": "n", "name": "m", "uid": "uid", "generation": 1}
    return {"metadata": meta, "spec": deployment().raw_spec, "status": {"provider": {"name": "example"}}}


def upstream_of_model() -> Upstream:
    applied = planned(deployment()).main
    live = copy.deepcopy(applied)
    live["metadata"] |= {"uid": "u", "resourceVersion": "8", "generation": 1}
    upstream = Upstream(UNUSED, provider(), "example", lambda: None)
    upstream.objects.put(live)
    return upstream


@pytest.mark.parametrize("blocking", [True, False])
async def test_blocking_function_leaves_the_loop_free(blocking: bool) -> None:
    released = threading.Event()

    def observe(_: Deployment, __: Object) -> Observation:
        # Only the loop releases it, so it never ends in time in the loop's own thread.
        return SERVES if released.wait(2.0 if blocking else 0.01) else replace(SERVES, message="held up")

    held = context(
        provider=replace(provider(), observe=observe, blocking=blocking), upstream=upstream_of_model()
    )
    report = Report(1)

    turn = asyncio.create_task(observation.observe(held, live_model(), report))
    await asyncio.sleep(0)
    released_before_its_end = not turn.done()
    released.set()
    await turn

    assert report.observation is not None
    assert (released_before_its_end, report.observation.message) == (
        blocking,
        "up" if blocking else "held up",
    )
