"""Resources of the container that serves an aggregated model (contract §2)."""

from __future__ import annotations

from kubefoundry_sdk.api.modeldeployment import ModelDeploymentSpec


def resources(spec: ModelDeploymentSpec) -> dict[str, dict[str, str]]:
    """memory is request and limit, cpu a request, GPUs a limit; without what the spec does not state."""
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    if spec.resources.memory is not None:
        requests["memory"] = limits["memory"] = str(spec.resources.memory)
    if spec.resources.cpu is not None:
        requests["cpu"] = str(spec.resources.cpu)
    if spec.resources.gpu and spec.gpu_count:
        limits[spec.resources.gpu.type] = str(spec.gpu_count)
    return {name: values for name, values in (("requests", requests), ("limits", limits)) if values}
