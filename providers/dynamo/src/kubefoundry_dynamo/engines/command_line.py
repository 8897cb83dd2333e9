"""The common parts of the engines' command lines: a worker, and flags from fields and `engine.args`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from kubefoundry_dynamo.versions import Version
from kubefoundry_sdk.engine import Derived, argv, dashed, parallel, states_tensor_parallelism
from kubefoundry_sdk.spec import ModelDeploymentSpec

Role = Literal["worker", "prefill", "decode"]

Flags = dict[str, str | None]
"""Flags without their dashes, in command-line order; None is a bare one."""


@dataclass(frozen=True, slots=True)
class Worker:
    """One kind of worker pod.

    Attributes:
        role: Its role.
        gpus: GPUs of a pod.
        runtime: The Dynamo version in its image.
        kv_events: Whether it must report its cache to the router.
    """

    role: Role
    gpus: int
    runtime: Version
    kv_events: bool


def model_flags(spec: ModelDeploymentSpec, model_flag: str) -> Flags:
    """Return model and served name; nothing for `source: custom`, whose image sets both."""
    if spec.model.source == "custom" or not spec.model.id:
        return {}
    flags: Flags = {model_flag: spec.model.id}
    if spec.served_name:
        flags["served-model-name"] = spec.served_name
    return flags


def tensor_parallelism(spec: ModelDeploymentSpec, worker: Worker, flag: str) -> Flags:
    """Return tensor parallelism over the GPUs that other sizes leave, unless `engine.args` sets it (contract §2)."""
    args = spec.engine.args
    if states_tensor_parallelism(args):
        return {}
    return {flag: str(parallel(spec.engine.type, args, worker.gpus).tensor)}


def command_line(spec: ModelDeploymentSpec, derived: Flags, args: Mapping[str, str]) -> list[str]:
    """Return the derived flags, the sorted args, and `engine.extraArgs`; they replace the same derived flag."""
    repeated = {*map(dashed, args), *spec.engine.extra_flags}
    kept = [
        Derived(name, "true" if value is None else value, "", switch=value is None)
        for name, value in derived.items()
        if name not in repeated
    ]
    return argv(kept, args, spec.engine.extra_args)


def states_any(args: Mapping[str, str], names: Iterable[str]) -> bool:
    """Check whether `engine.args` has one of the flags, with dashes or underscores."""
    stated = {dashed(name) for name in args}
    return any(name in stated for name in names)
