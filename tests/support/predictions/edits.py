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

OVERRIDES: Final = (
    "{frontend: {replicas: 2, resources: {cpu: 1000m}}}",
    "{routerMode: kv}",
    "{nosuch: 1}",
    "{rollout: Recreate}",
    "{drainSeconds: 5, startupSeconds: 600}",
    "{sharedMemory: 2Gi}",
    "{instanceType: Standard_NC24ads_A100_v4}",
    "{llamacppServer: llama-server}",
    "{head: {resources: {cpu: 500m, memory: 4096Mi}}}",
    "{}",
)
"""Overrides of one provider, which the others warn of; and an unknown key."""

ENVIRONMENTS: Final = (
    "[{name: B, value: d}, {name: A, value: c}]",
    "[{name: A}]",
    "[{name: A, value: ''}, {name: B, value: '$(A)$$'}]",
    "[{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
    "[{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory}}}]",
    "[{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}]",
    "[{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]",
    "[{name: A, valueFrom: {configMapKeyRef: {name: s, key: k, optional: true}}}]",
)
"""Variables in another order, without a value, and from each source: the API server adds defaults to some of them."""

VALUES: Final[dict[str, tuple[str, ...]]] = {
    "engine.type": ("vllm", "vllm", "sglang", "trtllm", "llamacpp"),
    "resources.gpu": ("",),
    "resources.gpu.count": ("0", "1", "2", "4"),
    "resources.memory": ("", "16Gi", "48Gi", "49152Mi", "1.5Gi", "16e9", "0"),
    "resources.cpu": ("", "4", "500m", "0.5", "4000m"),
    "resources.cpuLimit": ("", "4", "8", "8000m"),
    "image": ("", IMAGE, "example.com/engine:2.0.0"),
    "engine.contextLength": ("", "4096", "8192"),
    "engine.trustRemoteCode": ("", "true", "false"),
    "engine.extraArgs": ("", "[--lora-modules, a=org/a, b=org/b]", '["--port=1"]'),
    "engine.args.max-num-seqs": ("", "32", "64"),
    "engine.args.enable-prefix-caching": ("", "true"),
    "model.id": ("org/model", "org/other", "org/name/file.gguf"),
    "model.servedName": ("", "served"),
    "scaling.replicas": ("0", "1", "2", "3"),
    "nodeSelector.pool": ("", "gpu"),
    "nodeSelector": ("", "{zone: a, pool: '1'}"),
    "podTemplate.metadata.labels.team": ("", "a"),
    "podTemplate.metadata.annotations.note": ("", "x"),
    "tolerations": (
        "",
        "[{key: gpu, operator: Exists}]",
        "[{key: gpu, value: a, effect: NoExecute, tolerationSeconds: 60}, {operator: Exists}]",
        "[{key: gpu, operator: Equal, value: ''}]",
    ),
    "env": ("", "[{name: A, value: b}]", "[{name: A, value: c}, {name: B, value: d}]", *ENVIRONMENTS),
    "secrets.huggingFaceToken": ("", "hf-token", "other"),
    "resources.gpu.type": ("", "nvidia.com/gpu", "amd.com/gpu"),
    "scaling.prefill.replicas": ("0", "1", "3"),
    "scaling.prefill.gpu.count": ("1", "2"),
    "scaling.prefill.memory": ("16Gi", "17179869184", "1.5Gi"),
    "scaling.decode.replicas": ("0", "2"),
    "scaling.decode.gpu.type": ("", "nvidia.com/gpu", "amd.com/gpu"),
    "scaling.decode.memory": ("16Gi", "16384Mi"),
    "model.source": ("", "huggingface", "custom"),
    "provider.overrides": ("", *OVERRIDES),
    "engine.args.tensor-parallel-size": ("", "1", "2"),
    "engine.args.trust-remote-code": ("", "true", "false"),
    "engine.args.max_model_len": ("", "2048"),
    "engine.args.tp": ("", "2"),
    "engine.args.hf-overrides": ("", "{a: 1}", '{"a": 1}'),
    "engine.args.enforce-eager": ("", '""', "true", "false"),
    "engine.args.chat-template": ("", "$(HOME)/a b", "a$$b"),
    "podTemplate.metadata.labels.app": ("", "mine"),
    "podTemplate.metadata.annotations": ("", "{a: '', b: 'two lines\\n$(A)'}"),
    "model.storage": (
        "",
        "{volumes: [{name: w, claimName: weights, purpose: modelCache}]}",
        "{volumes: [{name: w, claimName: a, mountPath: /w, readOnly: true}], offline: true}",
    ),
    "podTemplate.spec.serviceAccountName": ("", "engine"),
    "podTemplate.spec.imagePullSecrets": ("", "[{name: registry}]", "[{name: b}, {name: a}]"),
    "podTemplate.spec.securityContext": ("", "{runAsUser: 2000}", "{supplementalGroups: [5]}"),
    "podTemplate.spec.affinity": (
        "",
        "{podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: "
        "{labelSelector: {matchLabels: {a: b}}, topologyKey: zone}}]}}",
    ),
    "podTemplate.spec.topologySpreadConstraints": (
        "",
        "[{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]",
    ),
    "podTemplate.spec.terminationGracePeriodSeconds": ("", "30", "600"),
    "podTemplate": (
        "",
        "{spec: {volumes: [{name: a, configMap: {name: c}}]}, "
        "container: {volumeMounts: [{name: a, mountPath: /a, readOnly: false}]}}",
        "{spec: {volumes: [{name: cache, emptyDir: {}}, {name: b, emptyDir: {sizeLimit: 1024Mi}}]}}",
    ),
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
