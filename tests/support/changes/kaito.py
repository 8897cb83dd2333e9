"""Changes of a ModelDeployment on KAITO. None reaches the running workload in place (sources §1.4)."""

from __future__ import annotations

from typing import Any

from support.changes.seen import (
    CLAIM,
    EDITS,
    ENV,
    TEMPLATE,
    TOLERATION,
    Change,
    Seen,
    Spec,
    at,
    with_metadata,
    without,
)
from support.deployments import CPU, GPU

_INFERENCE = "inference.template"
_PODS = f"{_INFERENCE}.spec"
_CONTAINER = f"{_PODS}.containers[0]"
_CONFIG = 'config["inference_config.yaml"].vllm'
_IMAGE = "example.com/vllm:2.0.0"
_RESOURCES = {"requests": {"memory": "32Gi", "cpu": "8"}, "limits": {"memory": "32Gi", "nvidia.com/gpu": "2"}}
_LLAMACPP = {"provider": {"name": "kaito", "overrides": {"llamacppServer": "llama-server"}}}


def _template(field: str, seen: Seen, edit: Spec | None = None, base: Spec = TEMPLATE) -> Change:
    return "recreate", field, base, edit or EDITS[field], seen


def _preset(field: str, seen: Seen, **engine: Any) -> Change:
    edit = {"engine": {"type": "vllm", "trustRemoteCode": True, **engine}} if engine else EDITS[field]
    return "recreate", f"{field} of a preset", GPU, edit, seen


CHANGES: list[Change] = [
    _template("model.id", at(f"{_CONTAINER}.args", "org/other")),
    _preset("model.id", at("inference.preset.name", "org/other")),
    _template("model.source", without('"--model"')),
    _template(
        "engine.type", at(f"{_CONTAINER}.args", "huggingface://org/model"), {"engine": {"type": "llamacpp"}}
    ),
    _template("model.servedName", at(f"{_CONTAINER}.args", "x")),
    _preset("model.servedName", at(f"{_CONFIG}.served-model-name", "x")),
    _template("env", at(f"{_CONTAINER}.env", ENV[0])),
    _template("resources", at(f"{_CONTAINER}.resources", _RESOURCES)),
    _template("engine.args", at(f"{_CONTAINER}.args", "--seed")),
    _preset("engine.args", at(f"{_CONFIG}.seed", "7"), args={"seed": "7"}),
    _template("engine.contextLength", at(f"{_CONTAINER}.args", "8192")),
    _preset("engine.contextLength", at(f"{_CONFIG}.max-model-len", "8192"), contextLength=8192),
    _template("engine.trustRemoteCode", without("--trust-remote-code")),
    _template("image", at(f"{_CONTAINER}.image", _IMAGE), {"image": _IMAGE}),
    _template("image in place of a preset", at(f"{_CONTAINER}.image", _IMAGE), {"image": _IMAGE}, GPU),
    _template("image taken away for a preset", at("inference.preset.name", "org/model"), {"image": None}),
    _template("secrets.huggingFaceToken", at(f"{_CONTAINER}.envFrom", {"secretRef": {"name": "s"}})),
    _preset("secrets.huggingFaceToken", at("inference.preset.presetOptions.modelAccessSecret", "s")),
    _template("model.storage", at(f"{_PODS}.volumes", CLAIM)),
    _template("podTemplate.metadata", with_metadata(f"{_INFERENCE}.metadata")),
    _template("podTemplate.spec", at(f"{_PODS}.priorityClassName", "high")),
    _template("podTemplate.container", at(f"{_CONTAINER}.securityContext.runAsUser", 7)),
    _template("nodeSelector", at("resource.labelSelector.matchLabels", {"pool": "a"})),
    _template("tolerations", at(f"{_PODS}.tolerations", TOLERATION)),
    _template("provider.overrides", at(f"{_CONTAINER}.args", "--hf-repo"), _LLAMACPP, CPU),
]
