"""Changes of a ModelDeployment on KAITO. None reaches the running workload in place (sources §1.4)."""

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
from support.deployments import CPU, GPU

_INFERENCE = "inference.template"
_CONTAINER = f"{_INFERENCE}.spec.containers[0]"
_CONFIG = 'config["inference_config.yaml"].vllm'
CHANGES: list[Change] = [
    ("recreate", "model.id", TEMPLATE, {"model": {"id": "org/other"}}, at(f"{_CONTAINER}.args", "org/other")),
    (
        "recreate",
        "model.id of a preset",
        GPU,
        {"model": {"id": "org/other"}},
        at("inference.preset.name", "org/other"),
    ),
    (
        "recreate",
        "model.source",
        TEMPLATE,
        {"model": {"id": "org/model", "source": "custom"}},
        without('"--model"'),
    ),
    (
        "recreate",
        "engine.type",
        TEMPLATE,
        {"engine": {"type": "llamacpp"}},
        at(f"{_CONTAINER}.args", "huggingface://org/model"),
    ),
    (
        "recreate",
        "model.servedName",
        TEMPLATE,
        {"model": {"id": "org/model", "servedName": "x"}},
        at(f"{_CONTAINER}.args", "x"),
    ),
    (
        "recreate",
        "model.servedName of a preset",
        GPU,
        {"model": {"id": "org/model", "servedName": "x"}},
        at(f"{_CONFIG}.served-model-name", "x"),
    ),
    ("recreate", "env", TEMPLATE, {"env": ENV}, at(f"{_CONTAINER}.env", ENV[0])),
    (
        "recreate",
        "resources",
        TEMPLATE,
        {"resources": {"gpu": {"count": 2}, "memory": "32Gi", "cpu": "8"}},
        at(
            f"{_CONTAINER}.resources",
            {"requests": {"memory": "32Gi", "cpu": "8"}, "limits": {"memory": "32Gi", "nvidia.com/gpu": "2"}},
        ),
    ),
    (
        "recreate",
        "engine.args",
        TEMPLATE,
        {"engine": {"type": "vllm", "args": {"seed": "7"}}},
        at(f"{_CONTAINER}.args", "--seed"),
    ),
    (
        "recreate",
        "engine.args of a preset",
        GPU,
        {"engine": {"type": "vllm", "trustRemoteCode": True, "args": {"seed": "7"}}},
        at(f"{_CONFIG}.seed", "7"),
    ),
    (
        "recreate",
        "engine.contextLength",
        TEMPLATE,
        {"engine": {"type": "vllm", "contextLength": 8192}},
        at(f"{_CONTAINER}.args", "8192"),
    ),
    (
        "recreate",
        "engine.contextLength of a preset",
        GPU,
        {"engine": {"type": "vllm", "trustRemoteCode": True, "contextLength": 8192}},
        at(f"{_CONFIG}.max-model-len", "8192"),
    ),
    (
        "recreate",
        "engine.trustRemoteCode",
        TEMPLATE,
        {"engine": {"type": "vllm"}},
        without("--trust-remote-code"),
    ),
    (
        "recreate",
        "image",
        TEMPLATE,
        {"image": "example.com/vllm:2.0.0"},
        at(f"{_CONTAINER}.image", "example.com/vllm:2.0.0"),
    ),
    (
        "recreate",
        "image in place of a preset",
        GPU,
        {"image": "example.com/vllm:2.0.0"},
        at(f"{_CONTAINER}.image", "example.com/vllm:2.0.0"),
    ),
    (
        "recreate",
        "image taken away for a preset",
        TEMPLATE,
        {"image": None},
        at("inference.preset.name", "org/model"),
    ),
    (
        "recreate",
        "secrets.huggingFaceToken",
        TEMPLATE,
        {"secrets": {"huggingFaceToken": "s"}},
        at(f"{_CONTAINER}.envFrom", {"secretRef": {"name": "s"}}),
    ),
    (
        "recreate",
        "secrets.huggingFaceToken of a preset",
        GPU,
        {"secrets": {"huggingFaceToken": "s"}},
        at("inference.preset.presetOptions.modelAccessSecret", "s"),
    ),
    (
        "recreate",
        "model.storage",
        TEMPLATE,
        {"model": {"id": "org/model", "storage": STORAGE}},
        at(f"{_INFERENCE}.spec.volumes", CLAIM),
    ),
    (
        "recreate",
        "podTemplate.metadata",
        TEMPLATE,
        {"podTemplate": POD},
        with_metadata(f"{_INFERENCE}.metadata"),
    ),
    (
        "recreate",
        "podTemplate.spec",
        TEMPLATE,
        {"podTemplate": {"spec": {"priorityClassName": "high"}}},
        at(f"{_INFERENCE}.spec.priorityClassName", "high"),
    ),
    (
        "recreate",
        "podTemplate.container",
        TEMPLATE,
        {"podTemplate": {"container": {"securityContext": {"runAsUser": 7}}}},
        at(f"{_CONTAINER}.securityContext.runAsUser", 7),
    ),
    (
        "recreate",
        "nodeSelector",
        TEMPLATE,
        {"nodeSelector": {"pool": "a"}},
        at("resource.labelSelector.matchLabels", {"pool": "a"}),
    ),
    (
        "recreate",
        "tolerations",
        TEMPLATE,
        {"tolerations": [TOLERATION]},
        at(f"{_INFERENCE}.spec.tolerations", TOLERATION),
    ),
    (
        "recreate",
        "provider.overrides",
        CPU,
        {"provider": {"name": "kaito", "overrides": {"llamacppServer": "llama-server"}}},
        at(f"{_CONTAINER}.args", "--hf-repo"),
    ),
]
