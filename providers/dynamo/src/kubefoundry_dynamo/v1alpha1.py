"""A graph as `nvidia.com/v1alpha1`: a map of services (sources §2.2)."""

from __future__ import annotations

from typing import Any, Final

from kubefoundry_dynamo.graph import Component, Graph
from kubefoundry_sdk import Object, Schema
from kubefoundry_sdk.pod import (
    LAST_WORDS,
    NO_SERVICE_LINKS,
    container_resources,
    with_container_settings,
    with_pod_settings,
)

NVIDIA_GPU: Final = "nvidia.com/gpu"
"""The resource that the CRD's `gpu` means by default."""


def spec_of(graph: Graph, schema: Schema) -> Object:
    """Return the spec of a graph, with the fields that the schema has."""
    return {
        "backendFramework": graph.backend,
        "services": {component.name: _service(graph, component, schema) for component in graph.components},
    }


def _service(graph: Graph, component: Component, schema: Schema) -> Object:
    container = _main_container(graph, component)
    envs = container.pop("env", [])
    # a service has its claims beside its requests and limits, which replace those of the main container
    container.pop("resources", None)
    service: Object = {
        "componentType": "frontend" if component.role == "frontend" else "worker",
        "replicas": component.replicas,
        "extraPodSpec": _pod_spec(graph, component, container),
    }
    if component.role in ("prefill", "decode") and "subComponentType" in schema.features:
        service["subComponentType"] = component.role
    if "globalDynamoNamespace" not in schema.features:
        # up to 0.6 all services must share one, and it is not a Kubernetes namespace (sources §2.2); the value is the
        # one that later operators generate
        service["dynamoNamespace"] = f"{graph.namespace}-{graph.name}"
    if not graph.runtime.from_tag and "runtimeVersionOverride" in schema.features:
        service["runtimeVersionOverride"] = str(graph.runtime.version)
    metadata = _nonempty(labels=dict(graph.labels), annotations=dict(graph.annotations))
    resources = container_resources(None, component.memory, component.cpu, component.cpu_limit)
    claims = graph.spec.pod_template.container.resource_claims if component.runs_engine else ()
    limits = {**resources.get("limits", {}), **_gpu_limits(component, schema)}
    return service | _nonempty(
        envFromSecret=graph.secret and graph.secret[0]["secretRef"]["name"],
        envs=envs,
        resources=_nonempty(requests=resources.get("requests"), limits=limits, claims=list(claims)),
        extraPodMetadata=metadata,
    )


def _main_container(graph: Graph, component: Component) -> Object:
    container = {"image": component.image, **LAST_WORDS} | _nonempty(
        command=list(component.command), args=list(component.args), env=list(component.env)
    )
    return with_container_settings(container, graph.spec, runs_engine=component.runs_engine)


def _pod_spec(graph: Graph, component: Component, container: Object) -> Object:
    pod = {"mainContainer": container, **NO_SERVICE_LINKS} | _nonempty(
        nodeSelector=dict(graph.node_selector), tolerations=list(graph.tolerations)
    )
    return with_pod_settings(pod, graph.spec, runs_engine=component.runs_engine)


def _gpu_limits(component: Component, schema: Schema) -> Object:
    if component.gpu is None:
        return {}
    count = str(component.gpu.count)
    if component.gpu.type == NVIDIA_GPU:
        return {"gpu": count}
    if "gpuType" in schema.features:
        return {"gpu": count, "gpuType": component.gpu.type}
    return {"custom": {component.gpu.type: count}}


def _nonempty(**fields: Any) -> Object:
    return {name: value for name, value in fields.items() if value}
