"""Generated histories of edits, failing pods and changes by others: a serving pod proves each claim of a status."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from kubefoundry_sdk._api import names
from kubefoundry_sdk.testing import simulated
from kubefoundry_sdk.testing._server.requests import Answer, Request
from kubefoundry_sdk.testing._server.server import Server
from support.known_pods import PROVIDERS, REPLICAS, World, harness

HISTORIES = 8
"""Histories of each provider."""
STEPS = 14


def untrue(world: World) -> list[str]:
    """Return the claims of the status that no ready pod proves."""
    status = world.harness.status
    ready = world.harness.condition("Ready")
    serving = {pod.generation for pod in world.pods if pod.ready}
    named = status.get("endpoint", {}).get("model", "")
    claims = []
    if ready["status"] == "True" and not serving:
        claims.append("Ready is True, but no pod serves")
    if ready["status"] == "True" and status["observedGeneration"] not in serving | {0}:
        claims.append(f"no pod of generation {status['observedGeneration']} serves, but of {serving}")
    if named and named not in {f"name-{generation}" for generation in serving}:
        claims.append(f"no pod serves {named}, but generations {serving} do")
    return claims


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(HISTORIES))
@pytest.mark.parametrize("provider", PROVIDERS)
@simulated
async def test_status_claims_only_what_pods_serve(provider: str, seed: int) -> None:
    chance = random.Random(seed)
    history = []
    async with harness(provider) as model:
        world = World(provider, model, chance)
        await world.start()
        assert model.status["observedGeneration"] == 1, model.status
        for _ in range(STEPS):
            steps = [world.edit, world.see, world.fail, world.recover if world.pods else world.see]
            others = [world.serve, world.restart, world.wait, world.drift, world.drift_unseen]
            step = chance.choice([*steps * 3, *others])
            history.append(step.__name__)
            await step()
            assert untrue(world) == [], f"{history}: {model.status} {world.pods}"
        # Until then, a change by others may be left alone because there were many of them.
        await world.wait()
        await world.serve()

        newest = model.model["metadata"]["generation"]
        assert (model.condition("Ready")["status"], model.status["observedGeneration"]) == ("True", newest)
        assert model.status["endpoint"]["model"] == f"name-{newest}"


@pytest.mark.parametrize(("is_down", "is_edited"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("provider", [name for name in PROVIDERS if name != "kaito"])
@simulated
async def test_foreign_pods_are_of_no_generation_during_revert(
    provider: str, is_down: bool, is_edited: bool
) -> None:
    async with harness(provider) as model:
        world = World(provider, model, random.Random(1))
        await world.start()

        await world.change_upstream(REPLICAS, is_down=is_down, is_edited=is_edited)
        for step in (world.see, world.wait, world.restart):
            await step()
            assert model.condition("Ready")["status"] == "True"
            assert model.status["observedGeneration"] == 0
            assert "model" not in model.status["endpoint"]
        await world.serve()

        newest = model.model["metadata"]["generation"]
        assert (model.status["observedGeneration"], model.status["endpoint"]["model"]) == (
            newest,
            f"name-{newest}",
        )


@pytest.mark.parametrize("annotations", [{}, {names.APPLIED_ANNOTATION: "x"}], ids=["none", "garbled"])
@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize("provider", [name for name in PROVIDERS if name != "kaito"])
@simulated
async def test_foreign_pods_are_of_no_generation_without_record(
    provider: str, is_down: bool, annotations: dict[str, str]
) -> None:
    """As after `kubectl replace` with a file of the user."""
    async with harness(provider) as model:
        world = World(provider, model, random.Random(1))
        await world.start()

        await world.change_upstream(REPLICAS, is_down=is_down, annotations=annotations)
        await world.see()
        await world.wait()
        during = model.status
        await world.serve()

        assert during["observedGeneration"] == 0 and "model" not in during["endpoint"]
        assert (model.status["observedGeneration"], model.status["endpoint"]["model"]) == (1, "name-1")


@pytest.mark.parametrize("provider", PROVIDERS)
@simulated
async def test_change_by_others_is_named_before_validation(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit that core has not validated yet keeps the change from being reverted."""
    async with harness(provider) as model:
        world = World(provider, model, random.Random(1))
        await world.start()
        monkeypatch.setattr(model, "_do_core", lambda: None)

        await model.edit({"model": {"servedName": "name-2"}})
        await world.change_upstream(REPLICAS)
        await world.wait()
        during = model.status
        monkeypatch.undo()
        model._do_core()
        await model.advance(30)
        await world.serve()

        assert during["observedGeneration"] == 0 and "model" not in during["endpoint"]
        assert "others changed" in during["message"]
        assert (model.status["observedGeneration"], model.status["endpoint"]["model"]) == (2, "name-2")


@simulated
async def test_kaito_keeps_its_generation_when_it_writes_no_status() -> None:
    """KAITO replaces no pod for a change of a Workspace, and writes only conditions that change."""
    async with harness("kaito") as model:
        world = World("kaito", model, random.Random(1))
        await world.start()

        await world.change_upstream(1)
        await model.advance(86_400)
        after_a_day = model.status
        await world.restart()

        for status in (after_a_day, model.status):
            assert (status["observedGeneration"], status["endpoint"]["model"]) == (1, "name-1")


def mirror_images(monkeypatch: pytest.MonkeyPatch, kind: str, mirror: str = "mirror") -> None:
    """Put a mirror in front of the images of one kind in each write, as a mutating webhook does."""
    monkeypatch.undo()
    answer = Server.answer

    def admitted(server: Server, request: Request) -> Answer:
        if re.search(rf'"kind": ?"{kind}"'.encode(), request.body or b""):
            mirrored = re.sub(rb'("image": ?")', rb"\1" + f"{mirror}/".encode(), request.body or b"")
            request = request._replace(body=mirrored)
        return answer(server, request)

    monkeypatch.setattr(Server, "answer", admitted)


@pytest.mark.parametrize("provider", [name for name in PROVIDERS if name != "kaito"])
@simulated
async def test_generation_is_kept_when_admission_changes_images(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with harness(provider) as model:
        mirror_images(monkeypatch, model._provider.upstream.kind)
        world = World(provider, model, random.Random(1))
        await world.start()

        await model._end()
        await world.edit()
        await model._start()
        await world.see()
        await world.wait()
        stuck = model.status
        await world.serve()

        assert (stuck["observedGeneration"], stuck["endpoint"]["model"]) == (1, "name-1")
        assert (model.status["observedGeneration"], model.status["endpoint"]["model"]) == (2, "name-2")


@pytest.mark.parametrize("policy", ["other", ""], ids=["changed", "removed"])
@pytest.mark.parametrize("provider", PROVIDERS)
@simulated
async def test_restart_keeps_pods_when_admission_changed(
    provider: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with harness(provider) as model:
        kind = model._provider.upstream.kind
        mirror_images(monkeypatch, kind)
        world = World(provider, model, random.Random(1))
        await world.start()
        before = model.upstream_object

        mirror_images(monkeypatch, kind, policy) if policy else monkeypatch.undo()
        for step in (world.wait, world.restart, world.wait):
            await step()

        assert model.upstream_object["metadata"]["generation"] == before["metadata"]["generation"]
        assert [event.reason for event in model.events if event.reason == "DriftDetected"] == []
        assert (model.status["observedGeneration"], model.status["endpoint"]["model"]) == (1, "name-1")


def scale(obj: Any) -> None:
    """Scale everything that has a number of replicas, as an autoscaler or a user does."""
    for key, value in obj.items() if isinstance(obj, dict) else enumerate(obj):
        if key == "status":
            continue
        if isinstance(value, dict | list):
            scale(value)
        elif key in ("replicas", "minReplicas"):
            obj[key] = value + 1


def add_label(obj: Any) -> None:
    obj["metadata"]["labels"]["team"] = "a"


def remove_labels(obj: Any) -> None:
    obj["metadata"]["labels"] = {}


def remove_record(obj: Any) -> None:
    del obj["metadata"]["annotations"][names.APPLIED_ANNOTATION]


@pytest.mark.parametrize("change", [scale, add_label, remove_labels, remove_record])
@pytest.mark.parametrize("provider", PROVIDERS)
@simulated
async def test_generation_is_kept_when_change_replaces_no_pod(
    provider: str, change: Callable[[Any], None]
) -> None:
    async with harness(provider) as model:
        world = World(provider, model, random.Random(1))
        await world.start()
        obj = model.upstream_object
        before = len(model.writes)

        change(obj)
        model.put(obj, manager="autoscaler")
        for step in (world.wait, world.see, world.restart, world.see):
            await step()

        reported = [write.body["status"] for write in model.writes[before:] if write.path.endswith("/status")]
        assert {status["observedGeneration"] for status in [*reported, model.status]} == {1}
        assert model.condition("Ready")["status"] == "True"
        assert model.status["endpoint"]["model"] == "name-1"
