"""What is remembered of an upstream object that was written, against a server in the API server's place."""

from __future__ import annotations

from dataclasses import replace

from aiohttp import web

from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._provider.contract import Endpoint, Observation, Replicas
from kubefoundry_sdk._provider.reconcile import application
from kubefoundry_sdk._provider.reconcile.report import Report
from kubefoundry_sdk._provider.reconcile.reported_generation import Snapshot, judge, note_applied
from kubefoundry_sdk._provider.watch.upstream import Upstream
from support.contexts import UNUSED, context
from support.plans import deployment, planned, provider
from support.wire import Asked, ok, wire

ENGINES = Kind("example.com", "v1", "engines", "Engine")
SERVES = Observation(
    "Running", "DeploymentReady", "1 of 1 replicas serve", Replicas(1, 1, 1), Endpoint("m", 80)
)


async def test_new_object_that_serves_at_once_serves_the_newest_spec() -> None:
    """The watch may be faster than the answer; no earlier status can be mistaken for that of a new object."""
    todo = planned(deployment())
    model: Object = {"metadata": {"name": "m", "namespace": "n", "uid": "uid", "generation": 1}, "spec": {}}
    upstream = Upstream(UNUSED, provider(), "example", lambda: None)

    def answer(asked: Asked) -> web.Response:
        meta = {**asked.body["metadata"], "uid": "u", "resourceVersion": "7", "generation": 1}
        created = {**asked.body, "metadata": meta}
        if asked.body["kind"] == "Engine":
            serving = {"observedGeneration": 1, "replicas": 1}
            upstream.objects.put({**created, "metadata": {**meta, "resourceVersion": "8"}, "status": serving})
        return ok(created)

    async with wire(answer) as api:
        held = context(client=api.client, upstream=upstream)
        report = Report(1)
        await application.write(held, ENGINES, todo, model, report)

    live = upstream.objects.get(("n", "m"))
    generations = held.memory(("n", "m")).generations
    assert live is not None and live["metadata"]["resourceVersion"] == "8"
    note_applied(generations, report, live)
    slow = replace(provider(), settles=3.0)
    assert judge(generations, Snapshot(model, live, report, SERVES, slow, "example", 1.0)) is None


def test_object_rewritten_before_first_status_serves_its_spec() -> None:
    """The operator takes a new object over by a rewrite, and it serves before the next reconcile looks."""
    upstream = Upstream(UNUSED, provider(), "example", lambda: None)
    held = context(upstream=upstream)
    generations, report = held.memory(("n", "m")).generations, Report(1)
    upstream.objects.subscribe(held.upstream_changed)
    meta = {"name": "m", "namespace": "n", "uid": "u", "generation": 2}
    serving = {"metadata": {**meta, "resourceVersion": "9"}, "status": {"observedGeneration": 2}}

    upstream.objects.put({"metadata": {**meta, "resourceVersion": "8"}})
    upstream.objects.put(serving)

    note_applied(generations, report, serving)
    model: Object = {"metadata": {"name": "m", "namespace": "n", "uid": "uid", "generation": 1}, "spec": {}}
    slow = replace(provider(), settles=3.0)
    assert judge(generations, Snapshot(model, serving, report, SERVES, slow, "example", 1.0)) is None
