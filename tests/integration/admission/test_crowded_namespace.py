"""A namespace full of large objects: no process exceeds its memory, and other namespaces are served."""

from __future__ import annotations

import asyncio
import random

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, EVENTS, MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.admission import BY_WEBHOOK
from support.deployments import CPU, GPU, model_deployment
from support.events import until_event
from support.memory import most_held
from support.namespaces import new_namespace
from support.waiting import SECONDS, phase, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

CONFIG_MAP_COUNT = 120
GROWTH = 60 * 2**20
"""Bytes: those ConfigMaps take twice as much, a store keeps 16 MiB of one namespace, and reading takes some, too."""


async def test_config_maps_with_our_labels_fill_no_process(suite: Suite, api: Client, namespace: str) -> None:
    kaito = suite.components["kaito"].process
    assert kaito
    before = most_held(kaito.pid)
    labels = {"kubefoundry.ai/managed-by": "kubefoundry", "kubefoundry.ai/provider": "kaito"}

    made = []
    for number in range(CONFIG_MAP_COUNT):
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"c-{number}", "namespace": namespace, "labels": labels},
            "data": {"x": random.Random(number).randbytes(500_000).hex()},
        }
        made.append(await api.create(CONFIG_MAPS, body, manager="tenant"))
    other = await new_namespace(api)
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", other, GPU, provider="kaito"), manager="another tenant"
    )
    await until_deployment(api, "m", other, lambda obj: phase(obj) == "Running")

    growth = most_held(kaito.pid) - before
    await until_event(api, namespace, "TooMuchInNamespace")
    events, _ = await api.list(EVENTS, namespace)
    [note] = {event["note"] for event in events if event["reason"] == "TooMuchInNamespace"}
    assert "delete some" in note
    assert growth < GROWTH, f"{growth / 2**20:.0f} MiB"
    print(f"{CONFIG_MAP_COUNT} ConfigMaps of a megabyte: {growth / 2**20:.0f} MiB more")
    for obj in made:
        await api.delete(CONFIG_MAPS, obj["metadata"]["name"], namespace, uid=obj["metadata"]["uid"])


async def test_model_is_refused_when_its_namespace_is_full(suite: Suite, api: Client, namespace: str) -> None:
    stored = []
    with pytest.raises(ApiError) as refused:
        for number in range(200):
            body = model_deployment(f"m-{number}", namespace, CPU, provider="nobody")
            body["metadata"]["annotations"] = {
                "tenant.example/text": random.Random(number).randbytes(120_000).hex()
            }
            stored.append(await api.create(MODEL_DEPLOYMENTS, body, manager="tenant"))

    assert refused.value.message.startswith(BY_WEBHOOK)
    assert "take too much memory together" in refused.value.message
    assert 60 < len(stored) < 150
    other = await new_namespace(api)
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", other, CPU, provider="nobody"), manager="another tenant"
    )
    # One that is deleted makes room for another.
    for obj in stored:
        await api.delete(MODEL_DEPLOYMENTS, obj["metadata"]["name"], namespace, uid=obj["metadata"]["uid"])
    await _admitted(api, namespace)


async def _admitted(api: Client, namespace: str) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            body = model_deployment("again", namespace, CPU, provider="nobody")
            body["metadata"]["annotations"] = {
                "tenant.example/text": random.Random(0).randbytes(99_000).hex()
            }
            try:
                await api.create(MODEL_DEPLOYMENTS, body, manager="tenant")
                return
            except ApiError as error:
                # Core sees a deletion a moment after it.
                assert "take too much memory together" in error.message
