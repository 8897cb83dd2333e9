"""A tenant's odd but valid wishes: each reaches the server, or is answered, and none stops the next."""

from __future__ import annotations

import asyncio
import json

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_nodes.llama.hub import Hub
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from pods.direct.models import pods, tiny
from support.waiting import phase, reason, until_deployment

pytestmark = pytest.mark.integration

LONGEST = "m" + "0" * 55
"""Its Service's name has 63 characters."""

SERVED = "Org/Tiny: a model @1"

WORDS = "🦙 $(HF_ENDPOINT) $$(HOME) 'quoted' \"twice\"\nsecond line"


async def test_every_override_odd_names_and_scaling_in_all_directions(
    suite: Suite, api: Client, namespace: str, models: Hub
) -> None:
    body = tiny(
        namespace,
        models,
        engine={"args": {"fa": "true", "fit": "false", "log-colors": "", "warmup": "false"}},
        resources={"cpu": "0"},
        overrides={
            "rollout": "replace",
            "startupSeconds": 60,
            "command": ["/bin/sh", "-c", 'test "$WORDS" && exec /app/llama-server "$@"', "$(HOME)"],
            "runAsUser": 12345,
            "imagePullSecrets": ["nobody-has-it"],
        },
    )
    body["metadata"]["name"] = LONGEST
    body["spec"]["model"]["servedName"] = SERVED
    body["spec"]["env"].append({"name": "WORDS", "value": WORDS})
    body["spec"]["podTemplate"] = {"metadata": {"annotations": {"example.com/note": "🦙" * 100}}}

    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_serving(api, namespace, 1)
    url = f"/api/v1/namespaces/{namespace}/services/{LONGEST}-server:8000/proxy"
    assert [one["id"] for one in (await api.read(f"{url}/v1/models"))["data"]] == [SERVED]

    await scaled(suite, namespace, 0)
    await until_deployment(api, LONGEST, namespace, lambda obj: reason(obj, "Ready") == "ScaledToZero")
    assert await pods(api, namespace) == []

    await scaled(suite, namespace, 2)
    # A change, and another while the first rolls out.
    for length in (256, 768):
        change = [{"op": "replace", "path": "/spec/engine/contextLength", "value": length}]
        await api.json_patch(MODEL_DEPLOYMENTS, LONGEST, namespace, change, manager="test")
    await until_serving(api, namespace, 2)
    assert (await api.read(f"{url}/v1/models"))["data"][0]["meta"]["n_ctx"] == 768
    environment = (await pods(api, namespace))[0]["spec"]["containers"][0]["env"]
    assert {"name": "WORDS", "value": WORDS} in json.loads(json.dumps(environment))


async def scaled(suite: Suite, namespace: str, replicas: int) -> None:
    """By the scale subresource, as a HorizontalPodAutoscaler does."""
    await asyncio.to_thread(
        suite.plane.kubectl, "scale", f"md/{LONGEST}", "-n", namespace, f"--replicas={replicas}"
    )


async def until_serving(api: Client, namespace: str, replicas: int) -> Object:
    """For the newest generation, without pods of an earlier one."""
    return await until_deployment(
        api,
        LONGEST,
        namespace,
        lambda obj: (
            phase(obj) == "Running"
            and obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
            and obj["status"]["replicas"] == {"desired": replicas, "ready": replicas, "available": replicas}
            and "rolling out" not in obj["status"]["message"]
        ),
    )
