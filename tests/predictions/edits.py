"""Random edits of a ModelDeployment, as options `--set`."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from support.deployments import CPU, DISAGGREGATED, GPU

IMAGE: Final = "example.com/engine:1.0.0"

GGUF: Final[dict[str, Any]] = {
    "model": {"id": "org/name/file.gguf"},
    "engine": {"type": "llamacpp"},
    "resources": {"memory": "4Gi"},
}
"""A model that only the provider of last resort takes."""

STARTS: Final[tuple[tuple[dict[str, Any], str | None], ...]] = (
    (GPU, None),
    (GPU, "kaito"),
    (GPU, "kuberay"),
    ({**GPU, "resources": {"gpu": {"count": 1}, "memory": "48Gi", "cpu": "4"}}, "kuberay"),
    ({**GPU, "engine": {"type": "sglang"}}, None),
    ({**GPU, "image": IMAGE}, "direct"),
    (CPU, None),
    (GGUF, None),
    (DISAGGREGATED, None),
    (DISAGGREGATED, "kuberay"),
)
"""Specs of new models, and the provider that they name."""

VALUES: Final[dict[str, tuple[str, ...]]] = {
    "engine.type": ("vllm", "vllm", "sglang", "trtllm", "llamacpp"),
    "resources.gpu": ("",),
    "resources.gpu.count": ("0", "1", "2", "4"),
    "resources.memory": ("", "16Gi", "48Gi"),
    "resources.cpu": ("", "4"),
    "image": ("", IMAGE, "example.com/engine:2.0.0"),
    "engine.contextLength": ("", "4096", "8192"),
    "engine.trustRemoteCode": ("", "true", "false"),
    "engine.args.max-num-seqs": ("", "32", "64"),
    "engine.args.enable-prefix-caching": ("", "true"),
    "model.id": ("org/model", "org/other", "org/name/file.gguf"),
    "model.servedName": ("", "served"),
    "scaling.replicas": ("0", "1", "2", "3"),
    "nodeSelector.pool": ("", "gpu"),
    "podTemplate.metadata.labels.team": ("", "a"),
    "podTemplate.metadata.annotations.note": ("", "x"),
    "tolerations": ("", "[{key: gpu, operator: Exists}]"),
    "env": ("", "[{name: A, value: b}]", "[{name: A, value: c}, {name: B, value: d}]"),
    "secrets.huggingFaceToken": ("", "hf-token"),
    "provider.name": ("", "", "kaito", "dynamo", "kuberay", "direct", "nobody"),
}
"""Paths, and the values that an edit gives them; an empty value removes the field."""

AGGREGATED_EDIT: Final = ("serving.mode=aggregated", "scaling=", "resources.gpu.count=1")
DISAGGREGATED_EDIT: Final = (
    "serving.mode=disaggregated",
    "resources=",
    "scaling={prefill: {replicas: 1, gpu: {count: 1}, memory: 16Gi}, decode: {replicas: 1, gpu: {count: 2}}}",
)


def some_edit(chance: Random) -> tuple[str, ...]:
    """One to three fields, or another serving mode."""
    if chance.random() < 0.06:
        return chance.choice((AGGREGATED_EDIT, DISAGGREGATED_EDIT))
    paths = chance.sample(sorted(VALUES), chance.choice((1, 1, 2, 3)))
    return tuple(f"{path}={chance.choice(VALUES[path])}" for path in paths)
