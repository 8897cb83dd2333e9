"""After any sequence of provider names, the result depends on the last name and on the provider that serves."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Mapping
from itertools import pairwise, product
from typing import Any, Final

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.kinds import UPSTREAM
from support.waiting import phase

pytestmark = pytest.mark.integration

NAMES: Final = (None, "dynamo", "kuberay", "nobody")
"""What `spec.provider.name` can be: nothing, two providers, and one that is not registered."""
AUTOMATIC: Final = "dynamo"
"""Whom the selector chooses for such a model."""
EDITS: Final = int(os.environ.get("KUBEFOUNDRY_NAME_EDITS", "3"))
"""Three lead from each name to each other one, with each provider serving; `make chaos` tries four."""
SEQUENCES: Final = [
    names for names in product(NAMES, repeat=EDITS) if all(one != other for one, other in pairwise(names))
]
"""All of that many edits. One that repeats a name is a shorter one, and those are the beginnings of these."""
SECONDS: Final = 300.0
"""Bound on all hand-overs of one step."""


def serving(names: tuple[str | None, ...]) -> str | None:
    """Who has it after these names: one that cannot have it changes nothing, and none keeps who is there."""
    current: str | None = None
    for name in names:
        if name is None:
            current = current or AUTOMATIC
        elif name in UPSTREAM:
            current = name
    return current


def selected(names: tuple[str | None, ...]) -> tuple[str, str]:
    """Status and reason of `ProviderSelected`."""
    match names[-1]:
        case None:
            return "True", "AutoSelected"
        case "nobody":
            return "False", "ProviderNotRegistered"
    return "True", "ExplicitlySelected"


def settled(names: tuple[str | None, ...]) -> Callable[[Object], bool]:
    """Whether all writers have said their last about it."""
    current = serving(names)

    def holds(obj: Object) -> bool:
        meta, status = obj["metadata"], obj.get("status") or {}
        conditions = {item["type"]: item for item in status.get("conditions") or ()}
        if {"Validated", "ProviderSelected", "Ready"} - conditions.keys():
            return False
        said = conditions["ProviderSelected"]
        managers = {
            entry["manager"] for entry in meta["managedFields"] if entry.get("subresource") == "status"
        }
        return (
            meta["generation"] == len(names)
            # A model that serves does not serve the name of a provider that is not registered.
            and (
                status["observedGeneration"] == meta["generation"]
                or (current is not None and said["reason"] == "ProviderNotRegistered")
            )
            and conditions["Validated"]["observedGeneration"] == meta["generation"]
            and (said["status"], said["reason"]) == selected(names)
            and said["observedGeneration"] == meta["generation"]
            and status.get("provider", {}).get("name") == current
            and phase(obj) == ("Running" if current else "Pending")
            and ("endpoint" in status) == (current is not None)
            and meta.get("finalizers", []) == ([f"kubefoundry.ai/{current}-provider"] if current else [])
            and not {f"{other}-provider" for other in UPSTREAM if other != current} & managers
        )

    return holds


async def until_all(
    api: Client, namespace: str, wanted: Mapping[str, Callable[[Object], bool]]
) -> dict[str, Object]:
    """The ModelDeployments of the namespace once each is as wanted; fails with those that are not."""
    seen: dict[str, Object] = {}

    def missing() -> list[str]:
        return [name for name, holds in wanted.items() if name not in seen or not holds(seen[name])]

    try:
        async with asyncio.timeout(SECONDS):
            items, version = await api.list(MODEL_DEPLOYMENTS, namespace)
            seen.update({item["metadata"]["name"]: item for item in items})
            waited = set(missing())
            if not waited:
                return seen
            async for event in api.watch(
                MODEL_DEPLOYMENTS, namespace, resource_version=version, seconds=600, silence=120
            ):
                if event["type"] in ("ADDED", "MODIFIED"):
                    seen[event["object"]["metadata"]["name"]] = event["object"]
                    waited = set(missing())
                    if not waited:
                        return seen
    except TimeoutError:
        pass
    failed = missing()
    shown = "\n".join(f"{name}: {seen.get(name, {}).get('status')}" for name in failed[:3])
    raise AssertionError(f"{len(failed)} of {len(wanted)} did not get there: {failed}\n{shown}")


def said(obj: Object) -> Any:
    """The status without its history (times, generations, the reason of a choice) and the object's name."""
    status = {key: value for key, value in obj["status"].items() if key != "observedGeneration"}
    passing = ("observedGeneration", "lastTransitionTime")
    conditions = [{k: v for k, v in item.items() if k not in passing} for item in status["conditions"]]
    provider = {k: v for k, v in status.get("provider", {}).items() if k != "selectedReason"}
    whole = {**status, "conditions": sorted(conditions, key=lambda it: str(it["type"])), "provider": provider}
    # The selector's memory and the start of the pods are about what happened before.
    whole.pop("selection", None)
    whole.pop("start", None)
    named = re.sub(rf"\b{obj['metadata']['name']}\b", "NAME", json.dumps(whole))
    # KubeRay's name of a cluster ends at random.
    return json.loads(re.sub(r"ray\.io/cluster=NAME-[a-z0-9]+", "ray.io/cluster=NAME", named))


async def test_edits_of_the_name_end_as_a_fresh_model(suite: Suite, api: Client, namespace: str) -> None:
    def label(sequence: tuple[str | None, ...]) -> str:
        return f"s{SEQUENCES.index(sequence)}"

    async def edit(sequence: tuple[str | None, ...], step: int) -> None:
        name = sequence[step]
        if step == 0:
            body = model_deployment(label(sequence), namespace, GPU, provider=name)
            await api.create(MODEL_DEPLOYMENTS, body, manager="test")
            return
        patch = [{"op": "add", "path": "/spec/provider", "value": {"name": name} if name else {}}]
        await api.json_patch(MODEL_DEPLOYMENTS, label(sequence), namespace, patch, manager="test")

    fresh: dict[tuple[str | None, str | None], Any] = {}
    for step in range(EDITS):
        async with asyncio.TaskGroup() as group:
            for sequence in SEQUENCES:
                group.create_task(edit(sequence, step))
        ends = {sequence: sequence[: step + 1] for sequence in SEQUENCES}
        found = await until_all(api, namespace, {label(it): settled(end) for it, end in ends.items()})
        for sequence, end in ends.items():
            name = label(sequence)
            reported = said(found[name])
            # The shortest way to the same end comes first: a fresh one, or one that kept its provider.
            assert reported == fresh.setdefault((end[-1], serving(end)), reported), f"{name}: {end}"
