"""Changes of a ModelDeployment on KubeRay, in the running cluster or by a second cluster (sources §3.6)."""

from __future__ import annotations

from support.changes.seen import (
    CLAIM,
    EDITS,
    ENV,
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

_GROUP = "cluster.workerGroupSpecs[0]"
_PODS = f"{_GROUP}.template.spec"
_CONTAINER = f"{_PODS}.containers[0]"
_APP = "serve.applications[0]"
_LLM = f"{_APP}.args.llm_configs[0]"
_IMAGE = "example.com/ray-llm:2.55.0"
_LIMITS = at(f"{_CONTAINER}.resources.limits", {"nvidia.com/gpu": "2", "memory": "32Gi"})
_HEAD = {"head": {"rayStartParams": {"num-cpus": "1"}}}


def _in_place(field: str, seen: Seen, edit: Spec | None = None, base: Spec = GPU) -> Change:
    return "in place", field, base, edit or EDITS[field], seen


CHANGES: list[Change] = [
    (
        "recreate",
        "model.id",
        GPU,
        EDITS["model.id"],
        at(f"{_LLM}.model_loading_config.model_source", "org/other"),
    ),
    (
        "recreate",
        "serving.mode",
        GPU,
        EDITS["serving.mode"],
        at(f"{_APP}.import_path", "ray.serve.llm:build_pd_openai_app"),
    ),
    _in_place("model.servedName", at(f"{_LLM}.model_loading_config.model_id", "x")),
    _in_place("scaling.replicas", at(f"{_APP}.deployments[0].num_replicas", 3)),
    _in_place("scaling.prefill", _LIMITS, role("prefill", 3, 2, "32Gi"), DISAGGREGATED),
    _in_place(
        "scaling.decode",
        at(f"{_APP}.deployments[1].num_replicas", 4),
        role("decode", 4, 1, "16Gi"),
        DISAGGREGATED,
    ),
    _in_place("env", at(f"{_CONTAINER}.env", ENV[0])),
    _in_place("resources", _LIMITS),
    _in_place("engine.args", at(f"{_LLM}.engine_kwargs.seed", 7)),
    _in_place("engine.contextLength", at(f"{_LLM}.engine_kwargs.max_model_len", 8192)),
    _in_place("engine.trustRemoteCode", without("trust_remote_code: true")),
    _in_place("image", at(f"{_CONTAINER}.image", _IMAGE), {"image": _IMAGE}),
    _in_place("secrets.huggingFaceToken", at(f"{_CONTAINER}.envFrom", {"secretRef": {"name": "s"}})),
    _in_place("model.storage", at(f"{_PODS}.volumes", CLAIM)),
    _in_place("podTemplate.metadata", with_metadata(f"{_GROUP}.template.metadata")),
    _in_place("podTemplate.spec", at(f"{_PODS}.priorityClassName", "high")),
    _in_place("podTemplate.container", at(f"{_CONTAINER}.securityContext.runAsUser", 7)),
    _in_place("nodeSelector", at(f"{_PODS}.nodeSelector", {"pool": "a"})),
    _in_place("tolerations", at(f"{_PODS}.tolerations", TOLERATION)),
    _in_place(
        "provider.overrides",
        at("cluster.headGroupSpec.rayStartParams.num-cpus", "1"),
        {"provider": {"name": "kuberay", "overrides": _HEAD}},
    ),
]
