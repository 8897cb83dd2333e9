"""Somebody changes several marks of an upstream object at once: they are restored, by a bounded number of writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import combinations, product
from random import Random
from typing import Any, Final

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import managed_fields, names
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import CPU, GPU, model_deployment
from support.restarts import stopped
from support.tenant import KINDS
from support.waiting import SECONDS, message, reason, until, until_deployment

pytestmark = pytest.mark.integration

# Provider direct watches by labels, provider Dynamo all objects of its kind: the other providers do as the latter.
LOSSES: Final[dict[str, tuple[str, ...]]] = {
    "managedFields": ("kept", "reset", "foreign"),
    "owner": ("kept", "removed", "replaced", "first"),
    "other controller": ("no", "yes"),
    "our roles": ("kept", "no controller", "no block", "none"),
    "labels": ("kept", "removed", "changed"),
    "annotations": ("kept", "removed", "uid removed", "record removed"),
}
WRITES: Final = 4
"""Of the provider to one upstream object: a repair, one more of ownership, and two conflicts with the operator."""

Loss = dict[str, str]


def losses() -> list[Loss]:
    """Return combinations in which each two values of two kinds of loss occur together."""
    chance, chosen = Random(6), []
    missing = {
        ((one, first), (two, second))
        for one, two in combinations(LOSSES, 2)
        for first, second in product(LOSSES[one], LOSSES[two])
    }
    while missing:
        candidates = [{kind: chance.choice(values) for kind, values in LOSSES.items()} for _ in range(30)]
        best = max(candidates, key=lambda loss: len(missing & set(combinations(loss.items(), 2))))
        missing -= set(combinations(best.items(), 2))
        chosen.append(best)
    return chosen


def edits(loss: Loss, live: Object, other: Object, manager: str) -> Iterator[dict[str, Any]]:
    """Yield the operations of a JSON patch that does the damage."""
    meta = live["metadata"]
    yield from _fields(loss["managedFields"], meta, manager)
    yield {"op": "replace", "path": "/metadata/ownerReferences", "value": _owners(loss, meta, other)}
    match loss["labels"]:
        case "removed":
            yield {"op": "remove", "path": "/metadata/labels"}
        case "changed":
            labels = {**meta["labels"], names.MANAGED_BY_LABEL: "me"}
            yield {"op": "replace", "path": "/metadata/labels", "value": labels}
    kept: Callable[[str], bool] = {
        "kept": lambda name: True,
        "removed": lambda name: False,
        "uid removed": lambda name: name != names.OWNER_UID_ANNOTATION,
        "record removed": lambda name: name != names.APPLIED_ANNOTATION,
    }[loss["annotations"]]
    left = {name: value for name, value in meta["annotations"].items() if kept(name)}
    yield {"op": "replace", "path": "/metadata/annotations", "value": left}


def _fields(loss: str, meta: Object, manager: str) -> Iterator[dict[str, Any]]:
    if loss == "reset":
        yield {"op": "replace", "path": "/metadata/managedFields", "value": [{}]}
    elif loss == "foreign":
        renamed = [
            {**entry, "manager": "other"} if entry["manager"] == manager else entry
            for entry in meta["managedFields"]
        ]
        yield {"op": "replace", "path": "/metadata/managedFields", "value": renamed}


def _owners(loss: Loss, meta: Object, other: Object) -> list[Object]:
    (ours,) = meta["ownerReferences"]
    lost = {"kept": (), "no controller": ("controller",), "no block": ("blockOwnerDeletion",)}
    without = lost.get(loss["our roles"], ("controller", "blockOwnerDeletion"))
    ours = {key: value for key, value in ours.items() if key not in without}
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other["metadata"]["uid"]}
    if loss["other controller"] == "yes":
        foreign["controller"] = True
        if loss["owner"] == "first":
            ours.pop("controller", None)
    return {"kept": [ours], "removed": [], "replaced": [foreign], "first": [foreign, ours]}[loss["owner"]]


def faults(obj: Object, before: Object, manager: str) -> list[str]:
    """Return our marks that the object lacks, compared with the object as it was."""
    meta, was = obj["metadata"], before["metadata"]
    owners = {owner["uid"]: owner for owner in meta.get("ownerReferences") or ()}
    (ours,) = was["ownerReferences"]
    others = [owner for uid, owner in owners.items() if uid != ours["uid"]]
    controls = not any(owner.get("controller") for owner in others)
    wanted = {**ours, "controller": controls}
    found = {**owners.get(ours["uid"], {})}
    found["controller"] = bool(found.get("controller"))
    return [
        *(["owner"] if found != wanted else []),
        *(
            name
            for part in ("labels", "annotations")
            for name, value in was[part].items()
            if name.startswith(names.PREFIX) and (meta.get(part) or {}).get(name) != value
        ),
        *(["managedFields"] if manager not in managed_fields.managers(obj) else []),
    ]


def proves_nothing(loss: Loss) -> bool:
    """Check whether neither an owner reference nor the annotation has our uid: only a running provider knows it."""
    return loss["owner"] in ("removed", "replaced") and loss["annotations"] in ("removed", "uid removed")


async def create_models(api: Client, namespace: str, provider: str, count: int) -> dict[str, Object]:
    """Create models, and return their upstream objects by name."""
    spec = CPU if provider == "direct" else GPU
    created: dict[str, Object] = {}
    for number in range(count):
        body = model_deployment(f"m{number}", namespace, spec, provider=provider)
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    for number in range(count):
        made = await until(api, KINDS[provider], f"m{number}", namespace, lambda obj: obj is not None)
        assert made is not None
        created[f"m{number}"] = made
    return created


async def until_repaired(api: Client, provider: str, before: Object, loss: Loss) -> None:
    """Wait until the object has all of our marks again. A failure shows what it lacks, and the model's status."""
    meta, last = before["metadata"], before

    def is_repaired(obj: Object | None) -> bool:
        nonlocal last
        assert obj is not None
        last = obj
        return not faults(obj, before, names.provider_manager(provider))

    try:
        await until(api, KINDS[provider], meta["name"], meta["namespace"], is_repaired, seconds=SECONDS)
    except AssertionError:
        model = await api.get(MODEL_DEPLOYMENTS, meta["name"], meta["namespace"])
        lacking = faults(last, before, names.provider_manager(provider))
        raise AssertionError(f"after {loss} it lacks {lacking}: {model['status']}") from None
    assert last["metadata"]["uid"] == meta["uid"]


@pytest.mark.parametrize("meanwhile", ["running", "stopped"])
@pytest.mark.parametrize("provider", ["direct", "dynamo"])
async def test_combined_losses_are_repaired_or_named(
    suite: Suite, api: Client, namespace: str, provider: str, meanwhile: str
) -> None:
    kind, cases = KINDS[provider], losses()
    metadata = {"name": "other", "namespace": namespace}
    other = await api.create(
        CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, manager="test"
    )
    before = await create_models(api, namespace, provider, len(cases))
    log, is_stopped = AuditLog(suite), meanwhile == "stopped"

    with stopped(suite.components[provider]) if is_stopped else nullcontext():
        for name, loss in zip(before, cases, strict=True):
            live = await api.get(kind, name, namespace)
            operations = list(edits(loss, live, other, names.provider_manager(provider)))
            await api.json_patch(kind, name, namespace, operations, manager="kubectl-edit")

    for name, loss in zip(before, cases, strict=True):
        if is_stopped and proves_nothing(loss):
            named = await until_deployment(
                api, name, namespace, lambda obj: reason(obj, "ResourceCreated") == "NameConflict"
            )
            assert f"{kind.kind} '{name}' exists" in message(named, "ResourceCreated"), loss
        else:
            await until_repaired(api, provider, before[name], loss)
    written = log.writes(f"provider-{provider}", namespace, kind.plural)
    for name, loss in zip(before, cases, strict=True):
        own = [entry for entry in written if f"/{name}?" in entry]
        assert len(own) <= WRITES, (loss, own)
