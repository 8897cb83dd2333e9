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

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        at="spec",
        field="engine.type",
        message="engine.type is required",
        cel="has(self.engine.type)",
        holds=lambda spec: "type" in spec["engine"],
    ),
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
            "self.serving.mode != 'disaggregated' || (!has(self.resources.memory) && !has(self.resources.cpu))"
        ),
        holds=lambda spec: not _disaggregated(spec) or not {"memory", "cpu"} & spec["resources"].keys(),
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
    Rule(
        at="spec.env[].valueFrom",
        field="",
        message=f"valueFrom requires exactly one of {', '.join(_VALUE_SOURCES)}",
        cel=f"[{', '.join(f'has(self.{source})' for source in _VALUE_SOURCES)}].exists_one(given, given)",
        holds=lambda origin: sum(source in origin for source in _VALUE_SOURCES) == 1,
    ),
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
)
