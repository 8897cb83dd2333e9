"""The parts of a deployment that run engines: one in aggregated mode, prefill and decode in disaggregated mode."""

from __future__ import annotations

from dataclasses import dataclass

from kubefoundry_sdk.spec import ComponentScaling, GpuSpec, ModelDeploymentSpec, Quantity


@dataclass(frozen=True, slots=True)
class Role:
    """A part of a deployment that runs engines.

    Attributes:
        name: The name of the worker group.
        prefix: The Serve deployment's name before its colon.
        replicas: Number of engines.
        gpus: GPUs of one replica, which is one worker pod.
        gpu_type: Resource name of these GPUs.
        cpu: CPUs of one replica.
        cpu_limit: The most CPUs of one replica.
        memory: Memory of one replica.
        exclusive: Whether only its own worker group may run it.
    """

    name: str
    prefix: str
    replicas: int
    gpus: int
    gpu_type: str
    cpu: Quantity | None
    cpu_limit: Quantity | None
    memory: Quantity | None
    exclusive: bool


def roles(spec: ModelDeploymentSpec) -> tuple[Role, ...]:
    """Return the roles in the order of their worker groups."""
    if spec.serving.mode == "disaggregated":
        return (
            _component("prefill", "Prefill", spec.scaling.prefill or ComponentScaling()),
            _component("decode", "Decode", spec.scaling.decode or ComponentScaling()),
        )
    gpu = spec.resources.gpu or GpuSpec()
    return (
        Role(
            name="gpu",
            prefix="LLMServer",
            replicas=spec.scaling.replicas,
            gpus=gpu.count,
            gpu_type=gpu.type,
            cpu=spec.resources.cpu,
            cpu_limit=spec.resources.cpu_limit,
            memory=spec.resources.memory,
            exclusive=False,
        ),
    )


def scaled_to_zero(spec: ModelDeploymentSpec) -> bool:
    """Check whether no role has replicas."""
    return all(role.replicas == 0 for role in roles(spec))


def _component(name: str, prefix: str, scaling: ComponentScaling) -> Role:
    gpu = scaling.gpu or GpuSpec()
    return Role(
        name=name,
        prefix=prefix,
        replicas=scaling.replicas,
        gpus=gpu.count,
        gpu_type=gpu.type,
        cpu=None,
        cpu_limit=None,
        memory=scaling.memory,
        exclusive=True,
    )
