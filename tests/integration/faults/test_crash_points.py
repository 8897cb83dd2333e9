"""A component is killed after each of its writes, one at a time: the objects are those of an undisturbed run."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.names import RESELECT_ANNOTATION
from kubefoundry_sdk._cluster.client import Client
from support.changes.seen import ENV, TEMPLATE
from support.chaos.state import served
from support.crashes.kill import Killer, crashing, until_idle
from support.crashes.left import Objects, left
from support.deployments import model_deployment
from support.kinds import UPSTREAM
from support.namespaces import new_namespace
from support.played_pods import node
from support.suites import running_suite
from support.waiting import SECONDS, until, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.apart]

PROVIDERS = ("kaito", "dynamo", "kuberay", "direct")
OTHERS = {"kaito": "dynamo", "dynamo": "kuberay", "kuberay": "dynamo", "direct": "kuberay", "core": "kuberay"}
"""The provider to which the model moves, by the component that is killed."""

ALL = os.environ.get("KUBEFOUNDRY_FAULTS") == "all"
COMPONENTS = ("core", "selector", *PROVIDERS) if ALL else ("direct",)
POINTS = range(100) if ALL else range(2, 3)
"""The number of writes before the kill. A second write is mostly the one upstream, or the report of it."""

GARBAGE = 120.0
"""Seconds of a step, at most: at a hand-over an operator waits for the garbage collector."""


@dataclass(frozen=True, slots=True)
class Step:
    """A user's action on ModelDeployment `m`: an edit, or its creation or deletion without operations.

    Attributes:
        name: The path of the reconcile.
        provider: The provider that serves afterwards.
        operations: A JSON patch.
    """

    name: str
    provider: str
    operations: tuple[dict[str, Any], ...] = ()


def steps(component: str) -> list[Step]:
    """Return the actions during which this component is killed."""
    provider = "dynamo" if component in ("core", "selector") else component
    # KAITO serves one replica.
    scale = (
        put("/spec/resources/gpu/count", 2) if provider == "kaito" else put("/spec/scaling", {"replicas": 2})
    )
    if component == "selector":
        moves = [
            Step("name a provider", "kuberay", (put("/spec/provider", {"name": "kuberay"}),)),
            Step("leave the choice", "kuberay", ({"op": "remove", "path": "/spec/provider"},)),
            Step("reselect", "dynamo", (put("/metadata/annotations", {RESELECT_ANNOTATION: "1"}),)),
        ]
    else:
        other = OTHERS[component]
        moves = [
            Step("hand-over away", other, (put("/spec/provider", {"name": other}),)),
            Step("hand-over back", provider, (put("/spec/provider", {"name": provider}),)),
        ]
    return [
        Step("create", provider),
        Step("change", provider, (put("/spec/env", ENV),)),
        Step("recreate", provider, (put("/spec/model/id", "org/other"),)),
        Step("scale", provider, (scale,)),
        *moves,
        Step("delete", provider),
    ]


def put(path: str, value: Any) -> dict[str, Any]:
    """Return an operation of a JSON patch."""
    return {"op": "add", "path": path, "value": value}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Run all components, with all of Kubernetes' controllers."""
    folder = tmp_path_factory.mktemp("crashes")
    with running_suite(folder, *UPSTREAM, plane_flags=["--all-controllers"]) as made:
        made.start("core", "selector", *PROVIDERS)
        yield made


async def act(api: Client, component: str, namespace: str, step: Step) -> None:
    """Take the step, and wait for its effect."""
    if step.name == "create":
        named = None if component == "selector" else step.provider
        body = model_deployment("m", namespace, TEMPLATE, provider=named)
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    elif step.name == "delete":
        live = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=live["metadata"]["uid"])
        await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
        return
    else:
        await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, step.operations, manager="test")
    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: all_serve(obj) and obj["status"]["provider"]["name"] == step.provider,
        seconds=GARBAGE,
    )


def all_serve(obj: Object) -> bool:
    """Check whether each wanted replica serves. Kubernetes' controllers have nothing left to do then."""
    counts = (obj.get("status") or {}).get("replicas") or {}
    return served(obj) and counts.get("available") == counts.get("desired")


async def until_left(api: Client, namespace: str, expected: Objects) -> Objects:
    """Return the objects of the namespace once they are as expected, or else those after SECONDS."""
    objects: Objects = {}
    with suppress(TimeoutError):
        async with asyncio.timeout(SECONDS):
            while (objects := await left(api, namespace)) != expected:  # noqa: ASYNC110
                await asyncio.sleep(PROBE)
    return objects


async def at_rest(suite: Suite, api: Client, namespace: str) -> Objects:
    """Return the objects of the namespace once no component has anything left to do."""
    before, objects = None, await left(api, namespace)
    while objects != before:
        for component in suite.components.values():
            await until_idle(component)
        before, objects = objects, await left(api, namespace)
    return objects


async def undisturbed(suite: Suite, api: Client, killer: Killer) -> dict[str, Objects]:
    """Return the objects after each step without a kill."""
    objects = {}
    name, namespace = killer.component.name, await new_namespace(api)
    async with node(api, namespace):
        for step in steps(name):
            killer.arm(namespace, None)
            await killer.survive(act(api, name, namespace, step))
            objects[step.name] = await at_rest(suite, api, namespace)
    # The garbage collector is the last to act on a deletion.
    objects["delete"] = await until_left(api, namespace, {})
    return objects


@pytest.mark.parametrize("component", COMPONENTS)
async def test_crash_after_each_write_leaves_the_same_objects(
    suite: Suite, api: Client, tmp_path: Path, component: str, capsys: pytest.CaptureFixture[str]
) -> None:
    killed: Counter[str] = Counter()
    async with crashing(suite, component, tmp_path) as killer:
        expected = await undisturbed(suite, api, killer)
        for point in POINTS:
            before = killed.total()
            namespace = await new_namespace(api)
            async with node(api, namespace):
                for step in steps(component):
                    killer.arm(namespace, point)
                    await killer.survive(act(api, component, namespace, step))
                    killed[step.name] += killer.killed.is_set()
                    objects = await until_left(api, namespace, expected[step.name])
                    assert objects == expected[step.name], f"{step.name}, killed after {point} writes"
            if killed.total() == before:
                break
    with capsys.disabled():
        print(f"\ncrash points of {component}: {dict(killed)}")

    assert expected["delete"] == {}
    # The selector writes nothing about a deletion.
    assert all(count for step, count in killed.items() if (component, step) != ("selector", "delete"))
