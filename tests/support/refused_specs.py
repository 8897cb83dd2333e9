"""Specs that the rules of a ModelDeployment refuse, each with the message (contract §2)."""

from __future__ import annotations

import copy
from typing import Any, Final, NamedTuple

Spec = dict[str, Any]

AGGREGATED: Final[Spec] = {
    "model": {"id": "meta-llama/Llama-3.1-8B-Instruct"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}
DISAGGREGATED: Final[Spec] = {
    "model": {"id": "meta-llama/Llama-3.1-70B-Instruct"},
    "engine": {"type": "vllm"},
    "serving": {"mode": "disaggregated"},
    "scaling": {
        "prefill": {"gpu": {"count": 4}, "memory": "128Gi"},
        "decode": {"gpu": {"count": 2}, "memory": "64Gi"},
    },
}
GONE: Final = object()


def changed(spec: Spec, **changes: Any) -> Spec:
    """Return a copy with changed fields, as `scaling__decode__memory="1Gi"`. GONE removes the field."""
    copied = copy.deepcopy(spec)
    for path, value in changes.items():
        *parents, name = path.split("__")
        part = copied
        for parent in parents:
            part = part.setdefault(parent, {})
        if value is GONE:
            part.pop(name, None)
        else:
            part[name] = value
    return copied


class Refused(NamedTuple):
    """A refused spec, with the path of the problem (`field`) and the complete message."""

    name: str
    spec: Spec
    field: str
    message: str


_VLLM = "vLLM engine requires GPU (set resources.gpu.count > 0)"
_ID = "model.id is required when source is huggingface"
_BOTH = "Disaggregated mode requires scaling.prefill and scaling.decode"
_REST = "Disaggregated mode does not use resources (set scaling.prefill.memory and scaling.decode.memory)"
_ONE = "Disaggregated mode requires scaling.replicas 1 (set scaling.prefill.replicas and scaling.decode.replicas)"
_SOURCE = "valueFrom requires exactly one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef"
_VOLUME = (
    "a volume requires exactly one of persistentVolumeClaim, emptyDir, configMap, secret, ephemeral, image"
)
_SECRET = {"secretKeyRef": {"name": "s", "key": "k"}}


def _variable(**fields: Any) -> Spec:
    return changed(AGGREGATED, env=[{"name": "A"}, {"name": "B", **fields}])


def _toleration(**fields: Any) -> Spec:
    return changed(AGGREGATED, tolerations=[{"operator": "Exists"}, fields])


def _pods(container: Spec | None = None, **spec: Any) -> Spec:
    return changed(AGGREGATED, podTemplate={"spec": spec, "container": container or {}})


def _stored(*volumes: Spec, **fields: Any) -> Spec:
    return changed(AGGREGATED, model__storage={"volumes": list(volumes)}, **fields)


_MODEL_CACHE = {"name": "a", "claimName": "a", "purpose": "modelCache"}
_ONE_CLAIM = (
    "a volume requires exactly one of claimName (an existing claim), claimTemplate (a claim that is created), image "
    "(the files of an OCI image)"
)
_IMAGE = {"image": {"reference": "example.com/weights:1"}}
_IN_BUCKET = {"uri": "s3://models/llama"}
_COMPILATION_CACHE = {"name": "b", "claimName": "b", "purpose": "compilationCache"}
_MODEL_VARIABLES = (
    "env may not set HF_HOME, HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, LLAMA_CACHE beside a volume with purpose "
    "modelCache: remove one of the two"
)
_COMPILATION_VARIABLES = (
    "env may not set VLLM_CACHE_ROOT, SGLANG_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR beside a volume "
    "with purpose compilationCache: remove one of the two"
)
_OFFLINE_VARIABLES = (
    "env may not set HF_HUB_OFFLINE, LLAMA_ARG_OFFLINE, LLAMA_OFFLINE beside model.storage.offline or an image with "
    "purpose modelCache: remove one of the two"
)


REFUSED: Final = (
    Refused("vLLM, 0 GPUs", changed(AGGREGATED, resources__gpu__count=0), "resources.gpu.count", _VLLM),
    Refused("vLLM, gpu omitted", changed(AGGREGATED, resources=GONE), "resources.gpu.count", _VLLM),
    Refused(
        "vLLM, gpu without count", changed(AGGREGATED, resources={"gpu": {}}), "resources.gpu.count", _VLLM
    ),
    Refused(
        "SGLang, 0 GPUs",
        changed(AGGREGATED, engine__type="sglang", resources__gpu__count=0),
        "resources.gpu.count",
        "SGLang engine requires GPU (set resources.gpu.count > 0)",
    ),
    Refused(
        "TensorRT-LLM, gpu omitted",
        changed(AGGREGATED, engine__type="trtllm", resources={}),
        "resources.gpu.count",
        "TensorRT-LLM engine requires GPU (set resources.gpu.count > 0)",
    ),
    Refused(
        "both forms of GPUs",
        changed(DISAGGREGATED, resources__gpu__count=1),
        "resources.gpu",
        "Cannot specify both resources.gpu and scaling.prefill/decode",
    ),
    Refused("memory of nothing", changed(DISAGGREGATED, resources__memory="1Gi"), "resources", _REST),
    Refused("cpu of nothing", changed(DISAGGREGATED, resources__cpu=1), "resources", _REST),
    Refused("no prefill", changed(DISAGGREGATED, scaling__prefill=GONE), "scaling", _BOTH),
    Refused("no decode", changed(DISAGGREGATED, scaling__decode=GONE), "scaling", _BOTH),
    Refused("neither component", changed(DISAGGREGATED, scaling=GONE), "scaling", _BOTH),
    Refused(
        "prefill without gpu",
        changed(DISAGGREGATED, scaling__prefill__gpu=GONE),
        "scaling.prefill.gpu.count",
        "Disaggregated mode requires scaling.prefill.gpu.count",
    ),
    Refused(
        "decode without gpu count",
        changed(DISAGGREGATED, scaling__decode__gpu={"type": "amd.com/gpu"}),
        "scaling.decode.gpu.count",
        "Disaggregated mode requires scaling.decode.gpu.count",
    ),
    Refused(
        "prefill without memory",
        changed(DISAGGREGATED, scaling__prefill__memory=GONE),
        "scaling.prefill.memory",
        "Disaggregated mode requires scaling.prefill.memory",
    ),
    Refused(
        "decode without memory",
        changed(DISAGGREGATED, scaling__decode__memory=None),
        "scaling.decode.memory",
        "Disaggregated mode requires scaling.decode.memory",
    ),
    Refused("replicas of the whole", changed(DISAGGREGATED, scaling__replicas=2), "scaling.replicas", _ONE),
    Refused(
        "no replicas of the whole", changed(DISAGGREGATED, scaling__replicas=0), "scaling.replicas", _ONE
    ),
    Refused("no model", changed(AGGREGATED, model=GONE), "model.id", _ID),
    Refused("empty model id", changed(AGGREGATED, model__id=""), "model.id", _ID),
    Refused(
        "custom model without image",
        changed(AGGREGATED, model={"source": "custom"}, image=""),
        "image",
        "image is required when source is custom",
    ),
    Refused(
        "overrides for nobody",
        changed(AGGREGATED, provider__overrides={"routerMode": "kv"}),
        "provider.overrides",
        "provider.overrides requires provider.name (they are settings of one provider)",
    ),
    Refused(
        "two values of a variable",
        _variable(value="x", valueFrom=_SECRET),
        "env[1].valueFrom",
        "value and valueFrom cannot both be set",
    ),
    Refused("no source of a variable", _variable(valueFrom={}), "env[1].valueFrom", _SOURCE),
    Refused(
        "two sources of a variable",
        _variable(valueFrom={**_SECRET, "fieldRef": {"fieldPath": "metadata.name"}}),
        "env[1].valueFrom",
        _SOURCE,
    ),
    Refused(
        "toleration of no key",
        _toleration(value="x"),
        "tolerations[1].operator",
        "operator must be Exists when key is empty",
    ),
    Refused(
        "toleration of any value and one",
        _toleration(key="k", operator="Exists", value="x"),
        "tolerations[1].value",
        "value must be empty when operator is Exists",
    ),
    Refused(
        "seconds without an eviction",
        _toleration(key="k", effect="NoSchedule", tolerationSeconds=1),
        "tolerations[1].effect",
        "effect must be NoExecute when tolerationSeconds is set",
    ),
    Refused(
        "volume without a source",
        _pods(volumes=[{"name": "a"}]),
        "podTemplate.spec.volumes[0]",
        _VOLUME,
    ),
    Refused(
        "volume with two sources",
        _pods(volumes=[{"name": "a", "emptyDir": {}, "configMap": {"name": "c"}}]),
        "podTemplate.spec.volumes[0]",
        _VOLUME,
    ),
    Refused(
        "claim of nothing",
        _pods(resourceClaims=[{"name": "gpu"}]),
        "podTemplate.spec.resourceClaims[0]",
        "a resource claim requires exactly one of resourceClaimName, resourceClaimTemplateName",
    ),
    Refused(
        "mount of no volume",
        _pods({"volumeMounts": [{"name": "b", "mountPath": "/b"}]}, volumes=[{"name": "a", "emptyDir": {}}]),
        "podTemplate.container.volumeMounts",
        "each name in container.volumeMounts must be the name of an entry in spec.volumes",
    ),
    Refused(
        "use of no claim",
        _pods({"resourceClaims": [{"name": "gpu"}]}),
        "podTemplate.container.resourceClaims",
        "each name in container.resourceClaims must be the name of an entry in spec.resourceClaims",
    ),
    Refused(
        "local seccomp profile without a file",
        _pods(securityContext={"seccompProfile": {"type": "Localhost"}}),
        "podTemplate.spec.securityContext.seccompProfile.localhostProfile",
        "localhostProfile is required for type Localhost, and only allowed there",
    ),
    Refused(
        "privilege escalation",
        _pods({"securityContext": {"allowPrivilegeEscalation": True}}),
        "podTemplate.container.securityContext.allowPrivilegeEscalation",
        "allowPrivilegeEscalation may only be false",
    ),
    Refused(
        "two caches of models",
        _stored(_MODEL_CACHE, {**_MODEL_CACHE, "name": "b"}),
        "model.storage.volumes",
        "at most one volume may have purpose modelCache",
    ),
    Refused(
        "two caches of code",
        _stored(_COMPILATION_CACHE, {**_COMPILATION_CACHE, "name": "a"}),
        "model.storage.volumes",
        "at most one volume may have purpose compilationCache",
    ),
    Refused(
        "volume without a claim",
        _stored({"name": "a", "purpose": "modelCache"}),
        "model.storage.volumes",
        _ONE_CLAIM,
    ),
    Refused(
        "volume with two claims",
        _stored({**_MODEL_CACHE, "claimTemplate": {"size": "1Gi"}}),
        "model.storage.volumes",
        _ONE_CLAIM,
    ),
    Refused(
        "volume with a claim and an image",
        _stored({**_MODEL_CACHE, **_IMAGE}),
        "model.storage.volumes",
        _ONE_CLAIM,
    ),
    Refused(
        "compilation cache in an image",
        _stored({"name": "a", "purpose": "compilationCache", **_IMAGE}),
        "model.storage.volumes",
        "an image is read-only, and an engine writes to its compilation cache: use a claim for purpose "
        "compilationCache",
    ),
    Refused(
        "object storage of an image's model",
        changed(AGGREGATED, model__source="custom", model__storage=_IN_BUCKET, image="example.com/engine:1"),
        "model.storage.uri",
        "the image contains the model when source is custom: remove model.storage.uri",
    ),
    *(
        Refused(
            f"object storage beside {name}",
            changed(AGGREGATED, model__storage={**_IN_BUCKET, **storage}),
            "model.storage.uri",
            "the engine reads the model from model.storage.uri and not from the hub: remove model.storage.offline "
            "and the volume with purpose modelCache",
        )
        for name, storage in (("offline", {"offline": True}), ("a model cache", {"volumes": [_MODEL_CACHE]}))
    ),
    Refused(
        "custom volume without a path",
        _stored({"name": "a", "claimName": "a"}),
        "model.storage.volumes",
        "mountPath is required for purpose custom",
    ),
    Refused(
        "two volumes of one name",
        _stored(_MODEL_CACHE, podTemplate={"spec": {"volumes": [{"name": "a", "emptyDir": {}}]}}),
        "model.storage.volumes",
        "a volume may not have the name of a volume in podTemplate.spec.volumes",
    ),
    Refused(
        "compilation cache of llama.cpp",
        _stored(_COMPILATION_CACHE, engine__type="llamacpp"),
        "model.storage.volumes",
        "llama.cpp keeps no compiled code: remove the volume with purpose compilationCache",
    ),
    Refused(
        "two places of the model cache",
        _stored(_MODEL_CACHE, env=[{"name": "A"}, {"name": "HF_HUB_CACHE", "value": "/x"}]),
        "env",
        _MODEL_VARIABLES,
    ),
    Refused(
        "two places of the compilation cache",
        _stored(_COMPILATION_CACHE, env=[{"name": "VLLM_CACHE_ROOT", "value": "/x"}]),
        "env",
        _COMPILATION_VARIABLES,
    ),
    Refused(
        "online and offline",
        changed(AGGREGATED, model__storage={"offline": True}, env=[{"name": "HF_HUB_OFFLINE", "value": "0"}]),
        "env",
        _OFFLINE_VARIABLES,
    ),
    Refused(
        "online beside weights in an image",
        _stored(
            {"name": "w", "image": {"reference": "registry.example/w:1"}, "purpose": "modelCache"},
            env=[{"name": "HF_HUB_OFFLINE", "value": "0"}],
        ),
        "env",
        _OFFLINE_VARIABLES,
    ),
)
