"""Changes of a ModelDeployment on Dynamo: a rolling update, or another set of components (sources §2.6)."""

from __future__ import annotations

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
    role,
    with_metadata,
    without,
)
from support.deployments import DISAGGREGATED, GPU

_WORKER = "VllmWorker"
_PODS = f"{_WORKER}.extraPodSpec"
_MAIN = f"{_PODS}.mainContainer"
_IMAGE = "example.com/vllm:1.0.1"
_RESOURCES = {"requests": {"cpu": "8", "memory": "32Gi"}, "limits": {"memory": "32Gi", "gpu": "2"}}
_PREFILL = {"gpu": "2", "memory": "32Gi"}
_ROUTER = {"name": "DYN_ROUTER_MODE", "value": "kv"}


def _in_place(field: str, seen: Seen, edit: Spec | None = None, base: Spec = GPU) -> Change:
    return "in place", field, base, edit or EDITS[field], seen


CHANGES: list[Change] = [
    ("recreate", "model.id", GPU, EDITS["model.id"], at(f"{_MAIN}.args", "org/other")),
    ("recreate", "model.source", TEMPLATE, EDITS["model.source"], without("dynamo.vllm")),
    ("recreate", "engine.type", GPU, {"engine": {"type": "sglang"}}, at("backend", "sglang")),
    ("recreate", "serving.mode", GPU, EDITS["serving.mode"], at("VllmDecodeWorker.replicas", 2)),
    _in_place("model.servedName", at(f"{_MAIN}.args", "x")),
    _in_place("scaling.replicas", at(f"{_WORKER}.replicas", 3)),
    _in_place("scaling.replicas 0", at(f"{_WORKER}.replicas", 0), {"scaling": {"replicas": 0}}),
    _in_place(
        "scaling.prefill",
        at("VllmPrefillWorker.resources.limits", _PREFILL),
        role("prefill", 2, 2, "32Gi"),
        DISAGGREGATED,
    ),
    _in_place(
        "scaling.decode", at("VllmDecodeWorker.replicas", 4), role("decode", 4, 1, "16Gi"), DISAGGREGATED
    ),
    _in_place("env", at(f"{_WORKER}.envs", ENV[0])),
    _in_place("resources", at(f"{_WORKER}.resources", _RESOURCES)),
    _in_place("engine.args", at(f"{_MAIN}.args", "--seed")),
    _in_place("engine.contextLength", at(f"{_MAIN}.args", "8192")),
    _in_place("engine.trustRemoteCode", without("--trust-remote-code")),
    _in_place("image", at(f"{_MAIN}.image", _IMAGE), {"image": _IMAGE}),
    _in_place("secrets.huggingFaceToken", at(f"{_WORKER}.envFromSecret", "s")),
    _in_place("model.storage", at(f"{_PODS}.volumes", CLAIM)),
    _in_place("podTemplate.metadata", with_metadata(f"{_WORKER}.extraPodMetadata")),
    _in_place("podTemplate.spec", at(f"{_PODS}.priorityClassName", "high")),
    _in_place("podTemplate.container", at(f"{_MAIN}.securityContext.runAsUser", 7)),
    _in_place("nodeSelector", at(f"{_PODS}.nodeSelector", {"pool": "a"})),
    _in_place("tolerations", at(f"{_PODS}.tolerations", TOLERATION)),
    _in_place(
        "provider.overrides",
        at("Frontend.envs", _ROUTER),
        {"provider": {"name": "dynamo", "overrides": {"routerMode": "kv"}}},
    ),
]
