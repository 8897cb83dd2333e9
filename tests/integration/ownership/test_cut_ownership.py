"""A tenant cuts the provider's entry in `managedFields` and forges the record: an edit takes effect, and no more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._api.managed_fields import managers
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._provider.write import manifest
from support.deployments import CPU, GPU, model_deployment
from support.restarts import stopped
from support.tenant import KINDS, deployments_available, tenant
from support.tenant_edits import PREFIX, content, leaves, patch
from support.waiting import message, serves, until, until_deployment

pytestmark = pytest.mark.integration

DROPPED = "left-behind"
NEW = "only-from-the-edit"
FORGED = "from-a-forged-record"
STATED: dict[str, Any] = {
    "env": [{"name": "KEPT", "value": "kept"}, {"name": "DROPPED", "value": DROPPED}],
    "nodeSelector": {DROPPED: "true"},
    "tolerations": [{"key": DROPPED, "operator": "Exists"}],
    "podTemplate": {"metadata": {"labels": {"left": DROPPED}}},
}
EDITED: dict[str, Any] = {
    "env": [STATED["env"][0], {"name": "NEW", "value": NEW}],
    "nodeSelector": {},
    "tolerations": [],
    "podTemplate": {},
}

Fields = dict[str, Any]


def top_only(fields: Fields, chance: Random) -> Fields:
    """As if the provider had applied maps that have one owner as a whole."""
    return {key: sub if key == "f:metadata" else {} for key, sub in fields.items()}


def first_field(fields: Fields, chance: Random) -> Fields:
    key = next(key for key in fields if key not in (".", "f:metadata"))
    below = fields[key]
    return {key: first_field(below, chance) if set(below) - {"."} else {}}


def some_fields(fields: Fields, chance: Random) -> Fields:
    kept = {key: some_fields(sub, chance) for key, sub in fields.items() if chance.random() < 0.6}
    return kept or fields


@pytest.mark.parametrize("cut", [None, top_only, first_field, some_fields])
@pytest.mark.parametrize("provider", KINDS)
async def test_edit_removes_fields_that_lost_their_owner(
    suite: Suite, api: Client, namespace: str, tmp_path: Path, provider: str, cut: Any
) -> None:
    spec = (CPU if provider == "direct" else GPU) | STATED
    if provider == "kaito":
        # Its presets support no env and no tolerations.
        spec |= {"image": "registry.example.com/vllm:1"}
    kind, manager = KINDS[provider], names.provider_manager(provider)
    async with tenant(suite, namespace, tmp_path) as user, deployments_available(api, namespace):
        body = model_deployment("m", namespace, spec, provider=provider)
        await user.create(MODEL_DEPLOYMENTS, body, manager="test")
        await until_deployment(user, "m", namespace, serves)
        live = await user.get(kind, "m", namespace)
        assert values_with(DROPPED, live)

        entries = [
            {**entry, "fieldsV1": cut(entry["fieldsV1"], Random(namespace))}
            if cut and entry["manager"] == manager and not entry.get("subresource")
            else entry
            for entry in live["metadata"]["managedFields"]
        ]
        if cut is None:
            # A reset: with the next apply, the API server lets `before-first-apply` own everything.
            entries = [{}]
        change = [patch("replace", f"/spec/{key}", value) for key, value in EDITED.items()]
        with_entries = [
            patch("replace", "/metadata/managedFields", entries),
            patch("replace", f"/metadata/annotations/{PREFIX}applied", forged(live)),
        ]
        cut_off = await user.json_patch(kind, "m", namespace, with_entries, manager="kubectl-edit")
        if cut is None:
            await until(api, kind, "m", namespace, lambda obj: obj is not None and manager in managers(obj))
        edited = await user.json_patch(MODEL_DEPLOYMENTS, "m", namespace, change, manager="kubectl-edit")

        await until_deployment(user, "m", namespace, lambda obj: serves(obj) and is_observed(obj, edited))
        last = await user.get(kind, "m", namespace)
        assert not values_with(DROPPED, last)
        new: list[str] = []
        async for between in versions(api, kind, cut_off, last):
            assert not values_with(FORGED, between)
            assert values_with(NEW, between) or not new
            new = values_with(NEW, between)
        assert new


async def test_edit_after_a_lost_record_names_unchecked_fields(
    suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    kind, component = KINDS["dynamo"], suite.components["dynamo"]
    async with tenant(suite, namespace, tmp_path) as user:
        body = model_deployment("m", namespace, GPU | STATED, provider="dynamo")
        await user.create(MODEL_DEPLOYMENTS, body, manager="test")
        await until_deployment(user, "m", namespace, serves)
        change = [patch("replace", f"/spec/{key}", value) for key, value in EDITED.items()]
        traces = [
            patch("replace", "/metadata/managedFields", [{}]),
            {"op": "remove", "path": f"/metadata/annotations/{PREFIX}applied"},
        ]
        with stopped(component):
            await user.json_patch(kind, "m", namespace, traces, manager="kubectl-edit")
            edited = await user.json_patch(MODEL_DEPLOYMENTS, "m", namespace, change, manager="kubectl-edit")

        words = "the record on DynamoGraphDeployment 'm' was lost before an edit, so fields that earlier versions set"
        told = await until_deployment(
            user, "m", namespace, lambda obj: serves(obj) and is_observed(obj, edited)
        )
        assert words in message(told, "Ready")
        assert words in told["status"]["message"]
        # Another process repeats it.
        with stopped(component):
            await user.json_patch(
                MODEL_DEPLOYMENTS,
                "m",
                namespace,
                [patch("add", "/spec/engine/contextLength", 4096)],
                manager="kubectl-edit",
            )
        again = await until_deployment(
            user, "m", namespace, lambda obj: serves(obj) and obj["metadata"]["generation"] == 3
        )
        assert words in message(again, "Ready")
        live = await user.get(kind, "m", namespace)
        await user.delete(kind, "m", namespace, uid=live["metadata"]["uid"])

        fresh = await until_deployment(
            user, "m", namespace, lambda obj: serves(obj) and words not in message(obj, "Ready")
        )
        assert words not in fresh["status"]["message"]
        assert not values_with(DROPPED, await user.get(kind, "m", namespace))


def forged(upstream: Object) -> str:
    """Return the object's record with other arguments: they must not get into the object."""
    record = manifest.applied(upstream)
    assert record is not None
    return manifest.pack(replace(record, manifest=with_arguments(record.manifest)))


def with_arguments(value: Any) -> Any:
    if isinstance(value, list):
        return [with_arguments(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: [FORGED] if key == "args" else with_arguments(below) for key, below in value.items()}


async def versions(api: Client, kind: Kind, first: Object, last: Object) -> AsyncIterator[Object]:
    """Yield each version of the object after the first one."""
    meta = last["metadata"]
    async for event in api.watch(
        kind,
        meta["namespace"],
        resource_version=first["metadata"]["resourceVersion"],
        seconds=600,
        silence=600,
        selector={"fieldSelector": f"metadata.name={meta['name']}"},
    ):
        if event["type"] == "MODIFIED":
            yield event["object"]
            if event["object"]["metadata"]["resourceVersion"] == meta["resourceVersion"]:
                return


def is_observed(model: Object, edited: Object) -> bool:
    return bool(model["status"]["observedGeneration"] >= edited["metadata"]["generation"])


def values_with(text: str, upstream: Object) -> list[str]:
    return [
        ".".join(map(str, path))
        for path, value in leaves(content(upstream))
        if text in path or text in str(value)
    ]
