"""Changes of a ModelDeployment on KubeRay, in the running cluster or by a second cluster (sources §3.6)."""

from __future__ import annotations

from support.changes.seen import CLAIM, ENV, POD, STORAGE, TOLERATION, Change, at, with_metadata, without
from support.deployments import DISAGGREGATED, GPU

_GROUP = "cluster.workerGroupSpecs[0]"
_PODS = f"{_GROUP}.template.spec"
_APP = "serve.applications[0]"
_LLM = f"{_APP}.args.llm_configs[0]"
CHANGES: list[Change] = [
    (
        "recreate",
        "model.id",
        GPU,
        {"model": {"id": "org/other"}},
        at(f"{_LLM}.model_loading_config.model_source", "org/other"),
    ),
    (
        "recreate",
        "serving.mode",
        GPU,
        {k: DISAGGREGATED[k] for k in ("serving", "scaling")} | {"resources": {}},
        at(f"{_APP}.import_path", "ray.serve.llm:build_pd_openai_app"),
    ),
    (
        "in place",
        "model.servedName",
        GPU,
        {"model": {"id": "org/model", "servedName": "x"}},
        at(f"{_LLM}.model_loading_config.model_id", "x"),
    ),
    (
        "in place",
        "scaling.replicas",
        GPU,
        {"scaling": {"replicas": 3}},
        at(f"{_APP}.deployments[0].num_replicas", 3),
    ),
    (
        "in place",
        "scaling.prefill",
        DISAGGREGATED,
        {
            "scaling": {
                **DISAGGREGATED["scaling"],
                "prefill": {"replicas": 3, "gpu": {"count": 2}, "memory": "32Gi"},
            }
        },
        at(f"{_PODS}.containers[0].resources.limits", {"nvidia.com/gpu": "2", "memory": "32Gi"}),
    ),
    (
        "in place",
        "scaling.decode",
        DISAGGREGATED,
        {
            "scaling": {
                **DISAGGREGATED["scaling"],
                "decode": {"replicas": 4, "gpu": {"count": 1}, "memory": "16Gi"},
            }
        },
        at(f"{_APP}.deployments[1].num_replicas", 4),
    ),
    ("in place", "env", GPU, {"env": ENV}, at(f"{_PODS}.containers[0].env", ENV[0])),
    (
        "in place",
        "resources",
        GPU,
        {"resources": {"gpu": {"count": 2}, "memory": "32Gi", "cpu": "8"}},
        at(f"{_PODS}.containers[0].resources.limits", {"nvidia.com/gpu": "2", "memory": "32Gi"}),
    ),
    (
        "in place",
        "engine.args",
        GPU,
        {"engine": {"type": "vllm", "args": {"seed": "7"}}},
        at(f"{_LLM}.engine_kwargs.seed", 7),
    ),
    (
        "in place",
        "engine.contextLength",
        GPU,
        {"engine": {"type": "vllm", "contextLength": 8192}},
        at(f"{_LLM}.engine_kwargs.max_model_len", 8192),
    ),
    (
        "in place",
        "engine.trustRemoteCode",
        GPU,
        {"engine": {"type": "vllm"}},
        without("trust_remote_code: true"),
    ),
    (
        "in place",
        "image",
        GPU,
        {"image": "example.com/ray-llm:2.55.0"},
        at(f"{_PODS}.containers[0].image", "example.com/ray-llm:2.55.0"),
    ),
    (
        "in place",
        "secrets.huggingFaceToken",
        GPU,
        {"secrets": {"huggingFaceToken": "s"}},
        at(f"{_PODS}.containers[0].envFrom", {"secretRef": {"name": "s"}}),
    ),
    (
        "in place",
        "model.storage",
        GPU,
        {"model": {"id": "org/model", "storage": STORAGE}},
        at(f"{_PODS}.volumes", CLAIM),
    ),
    (
        "in place",
        "podTemplate.metadata",
        GPU,
        {"podTemplate": POD},
        with_metadata(f"{_GROUP}.template.metadata"),
    ),
    (
        "in place",
        "podTemplate.spec",
        GPU,
        {"podTemplate": {"spec": {"priorityClassName": "high"}}},
        at(f"{_PODS}.priorityClassName", "high"),
    ),
    (
        "in place",
        "podTemplate.container",
        GPU,
        {"podTemplate": {"container": {"securityContext": {"runAsUser": 7}}}},
        at(f"{_PODS}.containers[0].securityContext.runAsUser", 7),
    ),
    (
        "in place",
        "nodeSelector",
        GPU,
        {"nodeSelector": {"pool": "a"}},
        at(f"{_PODS}.nodeSelector", {"pool": "a"}),
    ),
    ("in place", "tolerations", GPU, {"tolerations": [TOLERATION]}, at(f"{_PODS}.tolerations", TOLERATION)),
    (
        "in place",
        "provider.overrides",
        GPU,
        {"provider": {"name": "kuberay", "overrides": {"head": {"rayStartParams": {"num-cpus": "1"}}}}},
        at("cluster.headGroupSpec.rayStartParams.num-cpus", "1"),
    ),
]
