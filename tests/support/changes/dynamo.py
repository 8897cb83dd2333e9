"""Changes of a ModelDeployment on Dynamo: a rolling update, or another set of components (sources §2.6)."""

from __future__ import annotations

from support.changes.seen import (
    CLAIM,
    ENV,
    POD,
    STORAGE,
    TEMPLATE,
    TOLERATION,
    Change,
    at,
    with_metadata,
    without,
)
from support.deployments import DISAGGREGATED, GPU

_WORKER = "VllmWorker"
_MAIN = f"{_WORKER}.extraPodSpec.mainContainer"
CHANGES: list[Change] = [
    ("recreate", "model.id", GPU, {"model": {"id": "org/other"}}, at(f"{_MAIN}.args", "org/other")),
    (
        "recreate",
        "model.source",
        TEMPLATE,
        {"model": {"id": "org/model", "source": "custom"}},
        without("dynamo.vllm"),
    ),
    ("recreate", "engine.type", GPU, {"engine": {"type": "sglang"}}, at("backend", "sglang")),
    (
        "recreate",
        "serving.mode",
        GPU,
        {k: DISAGGREGATED[k] for k in ("serving", "scaling")} | {"resources": {}},
        at("VllmDecodeWorker.replicas", 2),
    ),
    (
        "in place",
        "model.servedName",
        GPU,
        {"model": {"id": "org/model", "servedName": "x"}},
        at(f"{_MAIN}.args", "x"),
    ),
    ("in place", "scaling.replicas", GPU, {"scaling": {"replicas": 3}}, at(f"{_WORKER}.replicas", 3)),
    ("in place", "scaling.replicas 0", GPU, {"scaling": {"replicas": 0}}, at(f"{_WORKER}.replicas", 0)),
    (
        "in place",
        "scaling.prefill",
        DISAGGREGATED,
        {
            "scaling": {
                **DISAGGREGATED["scaling"],
                "prefill": {"replicas": 2, "gpu": {"count": 2}, "memory": "32Gi"},
            }
        },
        at("VllmPrefillWorker.resources.limits", {"gpu": "2", "memory": "32Gi"}),
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
        at("VllmDecodeWorker.replicas", 4),
    ),
    ("in place", "env", GPU, {"env": ENV}, at(f"{_WORKER}.envs", ENV[0])),
    (
        "in place",
        "resources",
        GPU,
        {"resources": {"gpu": {"count": 2}, "memory": "32Gi", "cpu": "8"}},
        at(
            f"{_WORKER}.resources",
            {"requests": {"cpu": "8", "memory": "32Gi"}, "limits": {"memory": "32Gi", "gpu": "2"}},
        ),
    ),
    (
        "in place",
        "engine.args",
        GPU,
        {"engine": {"type": "vllm", "args": {"seed": "7"}}},
        at(f"{_MAIN}.args", "--seed"),
    ),
    (
        "in place",
        "engine.contextLength",
        GPU,
        {"engine": {"type": "vllm", "contextLength": 8192}},
        at(f"{_MAIN}.args", "8192"),
    ),
    ("in place", "engine.trustRemoteCode", GPU, {"engine": {"type": "vllm"}}, without("--trust-remote-code")),
    (
        "in place",
        "image",
        GPU,
        {"image": "example.com/vllm:1.0.1"},
        at(f"{_MAIN}.image", "example.com/vllm:1.0.1"),
    ),
    (
        "in place",
        "secrets.huggingFaceToken",
        GPU,
        {"secrets": {"huggingFaceToken": "s"}},
        at(f"{_WORKER}.envFromSecret", "s"),
    ),
    (
        "in place",
        "model.storage",
        GPU,
        {"model": {"id": "org/model", "storage": STORAGE}},
        at(f"{_WORKER}.extraPodSpec.volumes", CLAIM),
    ),
    (
        "in place",
        "podTemplate.metadata",
        GPU,
        {"podTemplate": POD},
        with_metadata(f"{_WORKER}.extraPodMetadata"),
    ),
    (
        "in place",
        "podTemplate.spec",
        GPU,
        {"podTemplate": {"spec": {"priorityClassName": "high"}}},
        at(f"{_WORKER}.extraPodSpec.priorityClassName", "high"),
    ),
    (
        "in place",
        "podTemplate.container",
        GPU,
        {"podTemplate": {"container": {"securityContext": {"runAsUser": 7}}}},
        at(f"{_WORKER}.extraPodSpec.mainContainer.securityContext.runAsUser", 7),
    ),
    (
        "in place",
        "nodeSelector",
        GPU,
        {"nodeSelector": {"pool": "a"}},
        at(f"{_WORKER}.extraPodSpec.nodeSelector", {"pool": "a"}),
    ),
    (
        "in place",
        "tolerations",
        GPU,
        {"tolerations": [TOLERATION]},
        at(f"{_WORKER}.extraPodSpec.tolerations", TOLERATION),
    ),
    (
        "in place",
        "provider.overrides",
        GPU,
        {"provider": {"name": "dynamo", "overrides": {"routerMode": "kv"}}},
        at("Frontend.envs", {"name": "DYN_ROUTER_MODE", "value": "kv"}),
    ),
]
