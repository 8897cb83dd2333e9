"""Resources and Secrets of the container that serves a model (contract §2)."""

from __future__ import annotations

from kubefoundry_sdk._api import quantity
from kubefoundry_sdk._api.fields import Quantity
from kubefoundry_sdk._api.modeldeployment import GpuSpec, ModelDeploymentSpec

Resources = dict[str, dict[str, Quantity]]


def is_nvidia(gpu_type: str) -> bool:
    """Check whether a GPU's resource is NVIDIA's: a whole GPU, a shared one or a MIG slice."""
    return gpu_type.startswith("nvidia.com/")


def container_resources(
    gpu: GpuSpec | None = None,
    memory: Quantity | None = None,
    cpu: Quantity | None = None,
    cpu_limit: Quantity | None = None,
) -> Resources:
    """Return `resources` of a container: memory as request and limit, cpu as a request, GPUs as a limit.

    An amount that is None is omitted.
    """
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    if memory is not None:
        requests["memory"] = limits["memory"] = memory
    if cpu is not None:
        requests["cpu"] = cpu
    if cpu_limit is not None:
        limits["cpu"] = cpu_limit
    if gpu and gpu.count:
        limits[gpu.type] = str(gpu.count)
    return {name: values for name, values in (("requests", requests), ("limits", limits)) if values}


def aggregated_resources(spec: ModelDeploymentSpec, *, nodes: int = 1) -> Resources:
    """Return `resources` for an aggregated model; empty if the spec states none.

    Args:
        spec: The spec. Its amounts are those of a whole replica.
        nodes: The number of nodes that a replica spans. Each gets an equal part, rounded up to a byte or a millicore.

    Raises:
        ValueError: The GPUs cannot be divided by the nodes.
    """
    gpu, memory = spec.resources.gpu, spec.resources.memory
    cpu, cpu_limit = spec.resources.cpu, spec.resources.cpu_limit
    if nodes == 1:
        return container_resources(gpu, _text(memory), _text(cpu), _text(cpu_limit))
    if spec.gpu_count % nodes:
        raise ValueError(f"{spec.gpu_count} GPUs cannot be divided by {nodes} nodes")
    return container_resources(
        gpu and gpu.model_copy(update={"count": gpu.count // nodes}),
        None if memory is None else quantity.share(memory, nodes, smallest=quantity.BYTE),
        None if cpu is None else quantity.share(cpu, nodes, smallest=quantity.MILLICORE),
        None if cpu_limit is None else quantity.share(cpu_limit, nodes, smallest=quantity.MILLICORE),
    )


def secret_env_from(spec: ModelDeploymentSpec) -> list[dict[str, dict[str, str]]]:
    """Return `envFrom` of a container: the Secret in `secrets.huggingFaceToken`; empty if the spec names none."""
    name = spec.secrets.hugging_face_token
    return [{"secretRef": {"name": name}}] if name else []


def _text(amount: Quantity | None) -> str | None:
    return None if amount is None else str(amount)
