"""The differences between engines: the program and its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_direct.names import PORT
from kubefoundry_sdk.engine import Derived, all_addresses, parallel, states_tensor_parallelism
from kubefoundry_sdk.spec import ModelDeploymentSpec

SERVICE: Final = "the Service"


def no_options(spec: ModelDeploymentSpec) -> Mapping[str, Any]:
    """Return no options, for engines that read none from a file."""
    return {}


@dataclass(frozen=True, slots=True)
class Engine:
    """The way to start one engine's server.

    Attributes:
        command: The program; empty if images start their server themselves, at various paths.
        derived: Returns the options that fields of the spec set.
        arguments: Returns the whole command line after the program.
        options: Returns the options that the engine reads from a file, by key.
        options_flags: Names of the flag that names this file.
        shared_memory: Whether its processes communicate through /dev/shm, which is 64 MiB in a container by default.
        elsewhere: Arguments that move the plain HTTP server from the address that the Service and the probes use.
    """

    command: tuple[str, ...]
    derived: Callable[[ModelDeploymentSpec], list[Derived]]
    arguments: Callable[[ModelDeploymentSpec], list[str]]
    options: Callable[[ModelDeploymentSpec], Mapping[str, Any]] = no_options
    options_flags: tuple[str, ...] = ()
    shared_memory: bool = True
    elsewhere: frozenset[str] = frozenset()


def on_hub(spec: ModelDeploymentSpec) -> bool:
    """Check whether the spec names the engine's model; otherwise the image contains the model."""
    return spec.model.source == "huggingface" and bool(spec.model.id)


def served_name(spec: ModelDeploymentSpec, flag: str) -> list[Derived]:
    """Return the option that sets the name under which the model is served, if the spec names a model and a name."""
    return [Derived(flag, spec.served_name, "model.servedName")] if on_hub(spec) and spec.served_name else []


def context(spec: ModelDeploymentSpec, flag: str) -> list[Derived]:
    """Return the option that limits the context length (tokens), if the spec does."""
    length = spec.engine.context_length
    return [] if length is None else [Derived(flag, str(length), "engine.contextLength")]


def trust(spec: ModelDeploymentSpec, flag: str) -> Derived:
    """Return the switch that allows or forbids code from the model's repository."""
    value = "true" if spec.engine.trust_remote_code else "false"
    return Derived(flag, value, "engine.trustRemoteCode", switch=True)


def address(spec: ModelDeploymentSpec) -> list[Derived]:
    """Return the options that make the server listen on all addresses, at the port of the Service."""
    return [all_addresses(spec.engine.args, SERVICE), port()]


def port() -> Derived:
    """Return the option that sets the server's port."""
    return Derived("port", str(PORT), SERVICE)


def tensor(spec: ModelDeploymentSpec, flag: str) -> list[Derived]:
    """Return tensor parallelism over the GPUs that other sizes leave, unless `engine.args` sets it (contract §2)."""
    args = spec.engine.args
    size = parallel(spec.engine.type, args, spec.gpu_count).tensor
    if states_tensor_parallelism(args) or size < 2:
        return []
    return [Derived(flag, str(size), "resources.gpu.count")]
