"""The webhooks refuse objects by the upstream operators' own rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kubefoundry_simulators.admission import dynamo_refusal, kaito_refusal

TEMPLATE: dict[str, Any] = {"template": {"spec": {"containers": []}}}
PRESET: dict[str, Any] = {"preset": {"name": "phi-4"}}


def workspace(inference: Any, name: str = "m", count: int = 1) -> dict[str, Any]:
    return {"metadata": {"name": name}, "resource": {"count": count}, "inference": inference}


@pytest.mark.parametrize(
    ("new", "old", "says"),
    [
        (workspace(TEMPLATE), None, None),
        (workspace(TEMPLATE, name="a.b"), None, "metadata.name"),
        (workspace({}), None, "Either Inference or Tuning"),
        (workspace({**TEMPLATE, **PRESET}), None, "Exactly one of preset or template"),
        (workspace({**PRESET, "config": "short"}), None, None),
        (workspace({**PRESET, "config": "missing"}), None, "'missing'"),
        (workspace({**PRESET, "config": "long"}), None, "max-model-len 9999999 exceeds"),
        (workspace({**PRESET, "config": "long"}), workspace(PRESET), None),
        (workspace(TEMPLATE, count=2), workspace(TEMPLATE), "field is immutable: resource.count"),
        (workspace({"preset": {"name": "other"}}), workspace(PRESET), "field is immutable: inference.preset"),
        (workspace({"template": {"spec": {}}}), workspace(TEMPLATE), None),
        (workspace({"preset": {"name": "phi-4", "presetOptions": {}}}), workspace(PRESET), None),
    ],
)
def test_kaito_webhook_refuses_invalid_workspaces(new: Any, old: Any, says: str | None) -> None:
    config_maps = {
        name: {"data": {"inference_config.yaml": f"vllm: {{max-model-len: {length}}}"}}
        for name, length in (("short", 4096), ("long", 9_999_999))
    }

    refusal = kaito_refusal(new, old, config_maps)

    assert refusal is None if says is None else refusal is not None and says in refusal
    assert refusal is None or refusal.startswith("validation failed: ")


def graph(images: Mapping[str, str | None], **spec: Any) -> dict[str, Any]:
    services = {
        name: {
            "componentType": "worker",
            "extraPodSpec": {"mainContainer": {"image": image}} if image else {},
        }
        for name, image in images.items()
    }
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "metadata": {"name": "m"},
        "spec": {"services": services, **spec},
    }


TWO = {"Frontend": "x:1.4.0", "Worker": "x:1.4.0"}


@pytest.mark.parametrize(
    ("new", "old", "needs_images", "says"),
    [
        (graph(TWO), None, True, None),
        (graph({}), None, False, "at least one service"),
        (graph({**TWO, "Frontend": None}), None, False, None),
        (
            graph({**TWO, "Frontend": None}),
            None,
            True,
            "components[Frontend]: the main container needs an image",
        ),
        (graph({**TWO, "Worker": "x:latest"}), None, True, "runtimeVersionOverride is required"),
        (graph({**TWO, "Worker": "host:5000/x"}), None, True, "runtimeVersionOverride is required"),
        (graph({**TWO, "Worker": "x:1.4.0-cuda@sha256:0"}), None, True, None),
        (graph({**TWO, "Another": "x:1.4.0"}), graph(TWO), False, "immutable"),
        (graph({"Frontend": "x:1.4.0"}), graph(TWO), False, "immutable"),
        (graph(TWO, backendFramework="vllm"), graph(TWO, backendFramework="sglang"), False, "immutable"),
        (graph({**TWO, "Worker": "y:1.4.0"}), graph(TWO), True, None),
    ],
)
def test_dynamo_webhook_refuses_invalid_graphs(
    new: Any, old: Any, needs_images: bool, says: str | None
) -> None:
    refusal = dynamo_refusal(new, old, needs_images=needs_images)

    assert refusal is None if says is None else refusal is not None and says in refusal
