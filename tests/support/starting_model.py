"""A model in memory whose pods start, stop and are replaced."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from typing import Any, Final

from kubefoundry_sdk import Pods
from kubefoundry_sdk._api.kinds import PODS
from kubefoundry_sdk._cluster.requests import path
from kubefoundry_sdk.testing import Harness
from kubefoundry_sdk.testing._harness import NAMESPACE
from support import things

LABEL: Final = "example.com/thing"
PROVIDER = replace(things.PROVIDER, pods=Pods(LABEL, lambda thing: [thing["metadata"]["name"]]))


def harness() -> Harness:
    return Harness(PROVIDER, things.crd())


def add_pod(harness: Harness, name: str = "model-0") -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {LABEL: harness.name}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    harness._send("POST", path(PODS, NAMESPACE), body)


def report_pod(harness: Harness, *, is_ready: bool, name: str = "model-0", now: str | None = None) -> None:
    now = now or harness._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    times = {"lastTransitionTime": now}
    status: dict[str, Any] = {
        "phase": "Running",
        "conditions": [
            {"type": "PodScheduled", "status": "True", **times},
            {"type": "Ready", "status": str(is_ready), **times},
        ],
        "containerStatuses": [{"name": "c", "ready": is_ready, "state": {"running": {"startedAt": now}}}],
    }
    live = harness.get(PODS, name)
    if earlier := live.get("status", {}).get("containerStatuses"):
        status["containerStatuses"] = earlier
        status["conditions"][0] = live["status"]["conditions"][0]
    harness._send(
        "PUT", path(PODS, NAMESPACE, name) + "/status", {**live, "status": status}, manager="kubelet"
    )


def seconds(harness: Harness) -> dict[str, int | None]:
    return {step["name"]: step.get("seconds") for step in harness.status.get("start", {}).get("steps", ())}


async def serve(harness: Harness) -> None:
    """Let the model start in some 20 seconds, and serve."""
    await harness.create(things.SPEC)
    add_pod(harness)
    await harness.advance(3)
    report_pod(harness, is_ready=False)
    await harness.advance(10)
    report_pod(harness, is_ready=True)
    await harness.upstream({"ready": 1})


async def replace_pod(model: Harness, generation: dict[str, int] | None = None) -> None:
    """Let the model stop, and serve again with another pod three hours later."""
    model._send("DELETE", path(PODS, NAMESPACE, "model-0"))
    await model.upstream({"ready": 0, **(generation or {})})
    await model.advance(3 * 3600)
    add_pod(model, "model-1")
    report_pod(model, is_ready=True, name="model-1")
    await model.upstream({"ready": 1, **(generation or {})})
