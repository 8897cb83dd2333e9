"""Providers and requests as selection sees them: plain values from the two resources (contract §5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kubefoundry_sdk import Object, cel
from kubefoundry_sdk.selector import (
    UPSTREAM_READY,
    find,
    ignored_fields,
    stated_contract,
    with_defaults,
    with_engine,
)


@dataclass(frozen=True, slots=True)
class SelectionRule:
    """A rule of a provider; `index` is its position in the InferenceProviderConfig."""

    index: int
    condition: str
    priority: int
    reason: str | None
    compiled: cel.Rule | cel.InvalidRule


Outage = Literal["short", "long"]
"""An outage of a provider that was healthy before. After a short outage, the provider may soon be back (contract
§5)."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A registered provider.

    Attributes:
        not_ready: The text after "is not ready", such as " (MESSAGE)" or empty; None if `status.ready` is true.
        outage: The outage if the provider is not healthy and was healthy before, else None.
        contract: The version of the contract that it states, empty if it states none.
        denied: Why the creator of the model may not use it, empty if that is allowed or was not checked.
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
    contract: str = ""
    denied: str = ""

    @property
    def healthy(self) -> bool:
        """Check whether the provider is ready and alive."""
        return self.not_ready is None and self.heartbeat_fresh


@dataclass(frozen=True, slots=True)
class Request:
    """The needs of a ModelDeployment.

    A disaggregated model always runs on GPUs: its components have the counts (contract §2).

    Attributes:
        left_out: The providers that refused it, with their reasons.
    """

    engine: str
    mode: str
    gpus: int
    variables: cel.Environment
    left_out: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    gpu_type: str = ""
    """Resource name of the GPUs; in disaggregated mode those of prefill."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """The spec with its defaults, and with the engine of this request."""
    is_engine_named: bool = True
    """Whether the stored spec names the engine. If not, there is one request for each engine that can run it."""

    @property
    def on_gpu(self) -> bool:
        """Check whether the model runs on GPUs."""
        return self.mode == "disaggregated" or self.gpus > 0

    def __str__(self) -> str:
        return f"engine={self.engine}, mode={self.mode}" + (
            f", gpu={self.gpus}" if self.mode == "aggregated" else ""
        )


Check = Literal["ready", "heartbeat", "engine", "mode", "gpu", "cpu", "fields", "use", "refused"]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A reason for which a provider is not a candidate. The text follows the provider's name."""

    check: Check
    text: str


def provider(config: Object) -> Provider:
    """Return the provider of an InferenceProviderConfig, which may have been stored under an older schema."""
    spec, status = config.get("spec") or {}, config.get("status") or {}
    capabilities = spec.get("capabilities") or {}
    return Provider(
        name=config["metadata"]["name"],
        engines=frozenset(capabilities.get("engines") or ()),
        serving_modes=frozenset(capabilities.get("servingModes") or ()),
        cpu_support=bool(capabilities.get("cpuSupport")),
        gpu_support=bool(capabilities.get("gpuSupport")),
        not_ready=None if status.get("ready") is True else _not_ready(status),
        contract=stated_contract(config),
        rules=tuple(_rule(index, rule) for index, rule in enumerate(spec.get("selectionRules") or ())),
    )


def request(
    deployment: Object, left_out: Mapping[str, str] | None = None, engine: str | None = None
) -> Request:
    """Return the request of a ModelDeployment with a valid spec.

    Args:
        deployment: The ModelDeployment.
        left_out: The providers that refused it, with their reasons.
        engine: The engine to try if the spec names none.
    """
    stored = deployment.get("spec") or {}
    spec = with_defaults(with_engine(stored, engine) if engine else stored)
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
        spec=spec,
        is_engine_named=engine is None,
    )


def exclusions(request: Request, offered: Provider) -> tuple[Exclusion, ...]:
    """Return every reason for which a provider is not a candidate."""
    excluded = list(incapabilities(request, offered))
    if offered.denied:
        excluded.append(Exclusion("use", offered.denied))
    if offered.not_ready is not None:
        excluded.append(Exclusion("ready", f"is not ready{offered.not_ready}"))
    if not offered.heartbeat_fresh:
        excluded.append(Exclusion("heartbeat", "sends no heartbeat"))
    if offered.name in request.left_out:
        words = request.left_out[offered.name]
        excluded.append(Exclusion("refused", f"refused it: {words}" if words else "refused it"))
    return tuple(excluded)


def incapabilities(request: Request, offered: Provider) -> tuple[Exclusion, ...]:
    """Return the needs of the request that the provider does not cover."""
    lacks: list[Exclusion] = []
    if request.engine not in offered.engines:
        lacks.append(Exclusion("engine", f"does not support {request.engine} engine"))
    if request.mode not in offered.serving_modes:
        lacks.append(Exclusion("mode", f"does not support {request.mode} mode"))
    if request.on_gpu and not offered.gpu_support:
        lacks.append(Exclusion("gpu", "does not support GPU"))
    if not request.on_gpu and not offered.cpu_support:
        lacks.append(Exclusion("cpu", "requires GPU (set resources.gpu.count > 0)"))
    stored = request.spec if request.is_engine_named else _without_engine(request.spec)
    if why := ignored_fields(stored, offered.contract):
        lacks.append(Exclusion("fields", why))
    return tuple(lacks)


def _without_engine(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec as it is stored, without the engine that is tried."""
    return {**spec, "engine": {name: value for name, value in spec["engine"].items() if name != "type"}}


def _rule(index: int, rule: Mapping[str, Any]) -> SelectionRule:
    condition = str(rule.get("condition", ""))
    return SelectionRule(
        index, condition, int(rule.get("priority") or 0), rule.get("reason") or None, cel.compile(condition)
    )


def _not_ready(status: Mapping[str, Any]) -> str:
    upstream = find(status.get("conditions"), UPSTREAM_READY)
    message = upstream.get("message") if upstream and upstream.get("status") != "True" else None
    return f" ({message})" if message else ""
