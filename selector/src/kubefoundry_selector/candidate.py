"""Providers and requests as selection sees them: plain values from the two resources (contract §5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kubefoundry_sdk.api import reasons
from kubefoundry_sdk.api.conditions import find
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.validation import default
from kubefoundry_selector import cel


@dataclass(frozen=True, slots=True)
class SelectionRule:
    """A rule of a provider; `index` is its position in the InferenceProviderConfig."""

    index: int
    condition: str
    priority: int
    reason: str | None
    compiled: cel.Rule | cel.InvalidRule


Outage = Literal["short", "long"]
"""Of a provider that was healthy before: whether it may be back in a moment (contract §5)."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A registered provider. `not_ready`: why `status.ready` is not true, else None.

    outage: how long it has not been healthy, if it was before.
    """

    name: str
    engines: frozenset[str]
    serving_modes: frozenset[str]
    cpu_support: bool
    gpu_support: bool
    not_ready: str | None
    rules: tuple[SelectionRule, ...]
    heartbeat_fresh: bool = True
    outage: Outage | None = None

    @property
    def healthy(self) -> bool:
        return self.not_ready is None and self.heartbeat_fresh


@dataclass(frozen=True, slots=True)
class Request:
    """What a ModelDeployment requests. `left_out`: providers that refused it, with their reasons.

    A disaggregated model always runs on GPUs: its components have the counts (contract §2).
    """

    engine: str
    mode: str
    gpus: int
    variables: cel.Environment
    left_out: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    gpu_type: str = ""
    """Resource name of the GPUs; in disaggregated mode those of prefill."""

    @property
    def on_gpu(self) -> bool:
        return self.mode == "disaggregated" or self.gpus > 0

    def __str__(self) -> str:
        return f"engine={self.engine}, mode={self.mode}" + (
            f", gpu={self.gpus}" if self.mode == "aggregated" else ""
        )


Check = Literal["ready", "heartbeat", "engine", "mode", "gpu", "cpu", "refused"]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why a provider is not a candidate; the text follows the provider's name."""

    check: Check
    text: str


def provider(config: Object) -> Provider:
    """Reads an InferenceProviderConfig, even one that was stored under an older schema."""
    spec, status = config.get("spec") or {}, config.get("status") or {}
    can = spec.get("capabilities") or {}
    return Provider(
        name=config["metadata"]["name"],
        engines=frozenset(can.get("engines") or ()),
        serving_modes=frozenset(can.get("servingModes") or ()),
        cpu_support=bool(can.get("cpuSupport")),
        gpu_support=bool(can.get("gpuSupport")),
        not_ready=None if status.get("ready") is True else _not_ready(status),
        rules=tuple(_rule(index, rule) for index, rule in enumerate(spec.get("selectionRules") or ())),
    )


def request(deployment: Object, left_out: Mapping[str, str] | None = None) -> Request:
    """What a ModelDeployment with a valid spec requests."""
    spec = default(deployment.get("spec") or {})
    part = (
        spec["scaling"].get("prefill", {})
        if spec["serving"]["mode"] == "disaggregated"
        else spec["resources"]
    )
    return Request(
        engine=spec["engine"].get("type", ""),
        mode=spec["serving"]["mode"],
        gpus=spec["resources"].get("gpu", {}).get("count", 0),
        variables=cel.environment(spec, deployment["metadata"]),
        left_out=left_out or {},
        namespace=deployment["metadata"].get("namespace", ""),
        gpu_type=part.get("gpu", {}).get("type", ""),
    )


def exclusions(asked: Request, offered: Provider) -> tuple[Exclusion, ...]:
    """Every reason why a provider is not a candidate."""
    found = list(incapabilities(asked, offered))
    if offered.not_ready is not None:
        found.append(Exclusion("ready", f"is not ready{offered.not_ready}"))
    if not offered.heartbeat_fresh:
        found.append(Exclusion("heartbeat", "sends no heartbeat"))
    if offered.name in asked.left_out:
        said = asked.left_out[offered.name]
        found.append(Exclusion("refused", f"refused it: {said}" if said else "refused it"))
    return tuple(found)


def incapabilities(asked: Request, offered: Provider) -> tuple[Exclusion, ...]:
    """What the request needs and the provider cannot do."""
    found: list[Exclusion] = []
    if asked.engine not in offered.engines:
        found.append(Exclusion("engine", f"does not support {asked.engine} engine"))
    if asked.mode not in offered.serving_modes:
        found.append(Exclusion("mode", f"does not support {asked.mode} mode"))
    if asked.on_gpu and not offered.gpu_support:
        found.append(Exclusion("gpu", "does not support GPU"))
    if not asked.on_gpu and not offered.cpu_support:
        found.append(Exclusion("cpu", "requires GPU (set resources.gpu.count > 0)"))
    return tuple(found)


def _rule(index: int, rule: Mapping[str, Any]) -> SelectionRule:
    condition = str(rule.get("condition", ""))
    return SelectionRule(
        index, condition, int(rule.get("priority") or 0), rule.get("reason") or None, cel.compile(condition)
    )


def _not_ready(status: Mapping[str, Any]) -> str:
    upstream = find(status.get("conditions"), reasons.UPSTREAM_READY)
    said = upstream.get("message") if upstream and upstream.get("status") != "True" else None
    return f" ({said})" if said else ""
