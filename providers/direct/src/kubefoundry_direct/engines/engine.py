"""What differs between engines: the program and its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_direct.names import PORT
from kubefoundry_sdk.api import engine_args
from kubefoundry_sdk.api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk.provider.command_line import Derived, all_addresses

SERVICE: Final = "the Service"


def no_options(spec: ModelDeploymentSpec) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Engine:
    """command: the program; empty if images start their server themselves, at various paths.

    derived: the options that fields of the spec set.
    arguments: the whole command line after the program.
    options: what the engine reads from a file, by key.
    shared_memory: whether its processes communicate through /dev/shm, which is 64 MiB in a container by default.
    elsewhere: args with which it no longer answers plain HTTP at the address that the Service and the probes use.
    """

    command: tuple[str, ...]
    derived: Callable[[ModelDeploymentSpec], list[Derived]]
    arguments: Callable[[ModelDeploymentSpec], list[str]]
    options: Callable[[ModelDeploymentSpec], Mapping[str, Any]] = no_options
    shared_memory: bool = True
    elsewhere: frozenset[str] = frozenset()


def on_hub(spec: ModelDeploymentSpec) -> bool:
    """Whether the engine is passed a model from the spec; otherwise the image contains it."""
    return spec.model.source == "huggingface" and bool(spec.model.id)


def served_name(spec: ModelDeploymentSpec, flag: str) -> list[Derived]:
    return [Derived(flag, spec.served_name, "model.servedName")] if on_hub(spec) and spec.served_name else []


def context(spec: ModelDeploymentSpec, flag: str) -> list[Derived]:
    length = spec.engine.context_length
    return [] if length is None else [Derived(flag, str(length), "engine.contextLength")]


def trust(spec: ModelDeploymentSpec, flag: str) -> Derived:
    value = "true" if spec.engine.trust_remote_code else "false"
    return Derived(flag, value, "engine.trustRemoteCode", switch=True)


def address(spec: ModelDeploymentSpec) -> list[Derived]:
    return [all_addresses(spec.engine.args, SERVICE), port()]


def port() -> Derived:
    return Derived("port", str(PORT), SERVICE)


def tensor(spec: ModelDeploymentSpec, flag: str) -> list[Derived]:
    """Tensor parallelism over the GPUs that other sizes leave, unless `engine.args` sets it (contract §2)."""
    args = spec.engine.args
    size = engine_args.parallel(spec.engine.type, args, spec.gpu_count).tensor
    if engine_args.states_tensor_parallelism(args) or size < 2:
        return []
    return [Derived(flag, str(size), "resources.gpu.count")]
