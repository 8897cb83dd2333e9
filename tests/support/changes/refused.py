"""Changes of a ModelDeployment that a provider refuses. The old workload keeps running."""

from __future__ import annotations

from support.changes.seen import Spec
from support.deployments import DISAGGREGATED

REFUSED: list[tuple[str, str, Spec, str]] = [
    (
        "kaito",
        "serving.mode",
        {"serving": DISAGGREGATED["serving"], "scaling": DISAGGREGATED["scaling"], "resources": {}},
        "KAITO does not support disaggregated mode",
    ),
    ("kaito", "engine.type", {"engine": {"type": "sglang"}}, "KAITO does not support sglang engine"),
    ("kaito", "scaling.replicas", {"scaling": {"replicas": 2}}, "KAITO serves 1 replica, not 2"),
    ("kaito", "scaling.replicas 0", {"scaling": {"replicas": 0}}, "KAITO cannot scale to 0"),
    (
        "kaito",
        "provider.overrides.instanceType",
        {"provider": {"name": "kaito", "overrides": {"instanceType": "x"}}},
        "KAITO creates no nodes in this cluster",
    ),
    ("kuberay", "engine.type", {"engine": {"type": "sglang"}}, "KubeRay does not support sglang"),
    (
        "kuberay",
        "model.source",
        {"model": {"id": "org/model", "source": "custom"}, "image": "example.com/ray-llm:2.55.0"},
        "KubeRay does not support model.source custom",
    ),
]
"""Provider, field, replacements of fields of the spec, and the beginning of the message."""
