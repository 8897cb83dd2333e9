"""Rules of a ModelDeployment spec that its structural schema cannot express, each in CEL and in Python.

The CEL text is in the CRD (Kubernetes 1.26: no messageExpression, fieldPath or optionals); the Python predicate runs
in the validating webhook and at reconcile time. Both see the spec with its defaults and without structural problems.
Source: contract §2.

Put a rule only at a place without a default. The API server checks a default against the rules at its place before it
fills in the defaults inside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_sdk._api.engine_caches import DECIDING, OFFLINE, PATHS

Value = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that a valid spec fulfils, in CEL and in Python.

    Attributes:
        at: The place of the value in the CRD, `[]` for each item of a list. `self` in CEL and the argument of
            `holds` are that value.
        field: The field below `at` that is wrong if the rule does not hold; "" for the value itself.
        message: The message if the rule does not hold.
        cel: The rule in CEL, for the API server.
        holds: The same rule in Python.
    """

    at: str
    field: str
    message: str
    cel: str
    holds: Callable[[Value], bool]


def _disaggregated(spec: Value) -> bool:
    return bool(spec["serving"]["mode"] == "disaggregated")


def _gpus(part: Value) -> int:
    return int(part["gpu"]["count"]) if "gpu" in part else 0


def _needs_gpu(engine: str, title: str) -> Rule:
    return Rule(
        at="spec",
        field="resources.gpu.count",
        message=f"{title} engine requires GPU (set resources.gpu.count > 0)",
        cel=(
            f"!has(self.engine.type) || self.engine.type != '{engine}' || self.serving.mode == 'disaggregated'"
            " || (has(self.resources.gpu) && self.resources.gpu.count > 0)"
        ),
        holds=lambda spec: (
            spec["engine"].get("type") != engine or _disaggregated(spec) or _gpus(spec["resources"]) > 0
        ),
    )


def _component_rules(name: str) -> tuple[Rule, Rule]:
    component = f"self.scaling.{name}"
    unless = f"self.serving.mode != 'disaggregated' || !has({component})"

    def absent(spec: Value) -> bool:
        return not _disaggregated(spec) or name not in spec["scaling"]

    return (
        Rule(
            at="spec",
            field=f"scaling.{name}.gpu.count",
            message=f"Disaggregated mode requires scaling.{name}.gpu.count",
            cel=f"{unless} || (has({component}.gpu) && {component}.gpu.count > 0)",
            holds=lambda spec: absent(spec) or _gpus(spec["scaling"][name]) > 0,
        ),
        Rule(
            at="spec",
            field=f"scaling.{name}.memory",
            message=f"Disaggregated mode requires scaling.{name}.memory",
            cel=f"{unless} || has({component}.memory)",
            holds=lambda spec: absent(spec) or "memory" in spec["scaling"][name],
        ),
    )


_VALUE_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef")

VOLUME_SOURCES: Final = ("persistentVolumeClaim", "emptyDir", "configMap", "secret", "ephemeral", "image")

_STORAGE_SOURCES: Final = ("claimName", "claimTemplate", "image")

_CLAIM_SOURCES: Final = ("resourceClaimName", "resourceClaimTemplateName")


def _exactly_one(at: str, what: str, names: tuple[str, ...]) -> Rule:
    return Rule(
        at=at,
        field="",
        message=f"{what} requires exactly one of {', '.join(names)}",
        cel=f"[{', '.join(f'has(self.{name})' for name in names)}].exists_one(given, given)",
        holds=lambda value: sum(name in value for name in names) == 1,
    )


def _refers(used: str, listed: str) -> Rule:
    """Return the rule that the names in a list of the container are in a list of the pod."""

    def names(template: Value, part: str, field: str) -> set[str]:
        return {item["name"] for item in template.get(part, {}).get(field, ())}

    return Rule(
        at="spec.podTemplate",
        field=f"container.{used}",
        message=f"each name in container.{used} must be the name of an entry in spec.{listed}",
        cel=(
            f"!has(self.container) || !has(self.container.{used}) || self.container.{used}.all(used, "
            f"has(self.spec) && has(self.spec.{listed}) && self.spec.{listed}.exists(one, one.name == used.name))"
        ),
        holds=lambda template: names(template, "container", used) <= names(template, "spec", listed),
    )


def _volumes(spec: Value) -> list[Value]:
    volumes: list[Value] = spec["model"].get("storage", {}).get("volumes", [])
    return volumes


def _has_purpose(spec: Value, purpose: str) -> bool:
    return any(volume["purpose"] == purpose for volume in _volumes(spec))


_VOLUMES: Final = "has(self.model.storage) && has(self.model.storage.volumes)"


def _of_volumes(message: str, cel: str, holds: Callable[[Value], bool]) -> Rule:
    """Return a rule about `model.storage.volumes` that holds without them."""
    return Rule(
        at="spec",
        field="model.storage.volumes",
        message=message,
        cel=f"!({_VOLUMES}) || {cel}",
        holds=holds,
    )


def _single(purpose: str) -> Rule:
    return _of_volumes(
        f"at most one volume may have purpose {purpose}",
        f"self.model.storage.volumes.filter(one, one.purpose == '{purpose}').size() <= 1",
        lambda spec: [volume["purpose"] for volume in _volumes(spec)].count(purpose) <= 1,
    )


def _of_uri(message: str, cel: str, holds: Callable[[Value], bool]) -> Rule:
    """Return a rule about `model.storage.uri` that holds without it."""
    return Rule(
        at="spec",
        field="model.storage.uri",
        message=message,
        cel=f"!has(self.model.storage) || !has(self.model.storage.uri) || ({cel})",
        holds=lambda spec: "uri" not in spec["model"].get("storage", {}) or holds(spec),
    )


def _no_variable(names: tuple[str, ...], where: str, is_set: str, applies: Callable[[Value], bool]) -> Rule:
    """Return the rule that `env` sets no variable that `model.storage` sets, or that would take precedence."""
    return Rule(
        at="spec",
        field="env",
        message=f"env may not set {', '.join(names)} beside {where}: remove one of the two",
        cel=f"!has(self.env) || !({is_set}) || !self.env.exists(one, one.name in {list(names)!r})",
        holds=lambda spec: (
            not applies(spec) or not {variable["name"] for variable in spec.get("env", ())} & {*names}
        ),
    )


def _cache_variables(purpose: str) -> Rule:
    return _no_variable(
        DECIDING[purpose],
        f"a volume with purpose {purpose}",
        f"{_VOLUMES} && self.model.storage.volumes.exists(one, one.purpose == '{purpose}')",
        lambda spec: _has_purpose(spec, purpose),
    )


_OF_STORAGE: Final = (
    *map(_single, PATHS),
    _of_volumes(
        "a volume requires exactly one of claimName (an existing claim), claimTemplate (a claim that is created), "
        "image (the files of an OCI image)",
        "self.model.storage.volumes.all(one, "
        f"[{', '.join(f'has(one.{name})' for name in _STORAGE_SOURCES)}].exists_one(given, given))",
        lambda spec: all(sum(name in one for name in _STORAGE_SOURCES) == 1 for one in _volumes(spec)),
    ),
    _of_volumes(
        "an image is read-only, and an engine writes to its compilation cache: use a claim for purpose "
        "compilationCache",
        "self.model.storage.volumes.all(one, !has(one.image) || one.purpose != 'compilationCache')",
        lambda spec: all(
            "image" not in one or one["purpose"] != "compilationCache" for one in _volumes(spec)
        ),
    ),
    _of_volumes(
        "mountPath is required for purpose custom",
        "self.model.storage.volumes.all(one, has(one.mountPath) || one.purpose != 'custom')",
        lambda spec: all("mountPath" in one or one["purpose"] != "custom" for one in _volumes(spec)),
    ),
    _of_volumes(
        "a volume may not have the name of a volume in podTemplate.spec.volumes",
        "!has(self.podTemplate) || !has(self.podTemplate.spec) || !has(self.podTemplate.spec.volumes)"
        " || !self.model.storage.volumes.exists("
        "one, self.podTemplate.spec.volumes.exists(other, other.name == one.name))",
        lambda spec: (
            not {one["name"] for one in _volumes(spec)}
            & {one["name"] for one in spec.get("podTemplate", {}).get("spec", {}).get("volumes", ())}
        ),
    ),
    _of_volumes(
        "llama.cpp keeps no compiled code: remove the volume with purpose compilationCache",
        "!has(self.engine.type) || self.engine.type != 'llamacpp'"
        " || !self.model.storage.volumes.exists(one, one.purpose == 'compilationCache')",
        lambda spec: spec["engine"].get("type") != "llamacpp" or not _has_purpose(spec, "compilationCache"),
    ),
    *map(_cache_variables, PATHS),
    _no_variable(
        tuple(dict.fromkeys(name for names in OFFLINE.values() for name in names)),
        "model.storage.offline or an image with purpose modelCache",
        f"has(self.model.storage) && self.model.storage.offline || {_VOLUMES}"
        " && self.model.storage.volumes.exists(one, has(one.image) && one.purpose == 'modelCache')",
        lambda spec: (
            bool(spec["model"].get("storage", {}).get("offline"))
            or any("image" in one and one["purpose"] == "modelCache" for one in _volumes(spec))
        ),
    ),
    _of_uri(
        "the image contains the model when source is custom: remove model.storage.uri",
        "self.model.source == 'huggingface'",
        lambda spec: spec["model"]["source"] == "huggingface",
    ),
    _of_uri(
        "the engine reads the model from model.storage.uri and not from the hub: remove model.storage.offline and "
        "the volume with purpose modelCache",
        "!self.model.storage.offline && (!has(self.model.storage.volumes)"
        " || !self.model.storage.volumes.exists(one, one.purpose == 'modelCache'))",
        lambda spec: not spec["model"]["storage"].get("offline") and not _has_purpose(spec, "modelCache"),
    ),
)
"""The rules of `model.storage`. They are rules of the spec, because `model` has a default."""


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        at="spec",
        field="model.id",
        message="model.id is required when source is huggingface",
        cel="self.model.source != 'huggingface' || (has(self.model.id) && self.model.id != '')",
        holds=lambda spec: spec["model"]["source"] != "huggingface" or bool(spec["model"].get("id")),
    ),
    Rule(
        at="spec",
        field="image",
        message="image is required when source is custom",
        cel="self.model.source != 'custom' || (has(self.image) && self.image != '')",
        holds=lambda spec: spec["model"]["source"] != "custom" or bool(spec.get("image")),
    ),
    _needs_gpu("vllm", "vLLM"),
    _needs_gpu("sglang", "SGLang"),
    _needs_gpu("trtllm", "TensorRT-LLM"),
    Rule(
        at="spec",
        field="resources.gpu",
        message="Cannot specify both resources.gpu and scaling.prefill/decode",
        cel="self.serving.mode != 'disaggregated' || !has(self.resources.gpu)",
        holds=lambda spec: not _disaggregated(spec) or "gpu" not in spec["resources"],
    ),
    Rule(
        at="spec",
        field="resources",
        message="Disaggregated mode does not use resources (set scaling.prefill.memory and scaling.decode.memory)",
        cel=(
            "self.serving.mode != 'disaggregated' || (!has(self.resources.memory) && !has(self.resources.cpu)"
            " && !has(self.resources.cpuLimit))"
        ),
        holds=lambda spec: (
            not _disaggregated(spec) or not {"memory", "cpu", "cpuLimit"} & spec["resources"].keys()
        ),
    ),
    Rule(
        at="spec",
        field="scaling",
        message="Disaggregated mode requires scaling.prefill and scaling.decode",
        cel="self.serving.mode != 'disaggregated' || (has(self.scaling.prefill) && has(self.scaling.decode))",
        holds=lambda spec: not _disaggregated(spec) or {"prefill", "decode"} <= spec["scaling"].keys(),
    ),
    *_component_rules("prefill"),
    *_component_rules("decode"),
    Rule(
        at="spec",
        field="scaling.replicas",
        message=(
            "Disaggregated mode requires scaling.replicas 1"
            " (set scaling.prefill.replicas and scaling.decode.replicas)"
        ),
        cel="self.serving.mode != 'disaggregated' || self.scaling.replicas == 1",
        holds=lambda spec: not _disaggregated(spec) or spec["scaling"]["replicas"] == 1,
    ),
    Rule(
        at="spec.provider",
        field="overrides",
        message="provider.overrides requires provider.name (they are settings of one provider)",
        cel="!has(self.overrides) || has(self.name)",
        holds=lambda provider: "overrides" not in provider or "name" in provider,
    ),
    Rule(
        at="spec.env[]",
        field="valueFrom",
        message="value and valueFrom cannot both be set",
        cel="!has(self.valueFrom) || !has(self.value) || self.value == ''",
        holds=lambda variable: "valueFrom" not in variable or not variable.get("value"),
    ),
    _exactly_one("spec.env[].valueFrom", "valueFrom", _VALUE_SOURCES),
    Rule(
        at="spec.tolerations[]",
        field="operator",
        message="operator must be Exists when key is empty",
        cel="(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')",
        holds=lambda toleration: bool(toleration.get("key")) or toleration.get("operator") == "Exists",
    ),
    Rule(
        at="spec.tolerations[]",
        field="value",
        message="value must be empty when operator is Exists",
        cel="!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
        holds=lambda toleration: toleration.get("operator") != "Exists" or not toleration.get("value"),
    ),
    Rule(
        at="spec.tolerations[]",
        field="effect",
        message="effect must be NoExecute when tolerationSeconds is set",
        cel="!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
        holds=lambda toleration: (
            "tolerationSeconds" not in toleration or toleration.get("effect") == "NoExecute"
        ),
    ),
    _exactly_one("spec.podTemplate.spec.volumes[]", "a volume", VOLUME_SOURCES),
    _exactly_one("spec.podTemplate.spec.resourceClaims[]", "a resource claim", _CLAIM_SOURCES),
    _refers("volumeMounts", "volumes"),
    _refers("resourceClaims", "resourceClaims"),
    Rule(
        at="spec.podTemplate.spec.securityContext.seccompProfile",
        field="localhostProfile",
        message="localhostProfile is required for type Localhost, and only allowed there",
        cel="has(self.localhostProfile) == (self.type == 'Localhost')",
        holds=lambda profile: ("localhostProfile" in profile) == (profile["type"] == "Localhost"),
    ),
    Rule(
        at="spec.podTemplate.container.securityContext",
        field="allowPrivilegeEscalation",
        message="allowPrivilegeEscalation may only be false",
        cel="!has(self.allowPrivilegeEscalation) || !self.allowPrivilegeEscalation",
        holds=lambda context: not context.get("allowPrivilegeEscalation"),
    ),
    *_OF_STORAGE,
)
