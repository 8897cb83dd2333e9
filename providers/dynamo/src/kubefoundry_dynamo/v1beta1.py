"""A graph as `nvidia.com/v1beta1`: a list of components, each with a pod template (sources §2.2)."""

from __future__ import annotations

from typing import Any

from kubefoundry_dynamo.graph import Component, Graph
from kubefoundry_sdk import Object, Schema
from kubefoundry_sdk.pod import (
    LAST_WORDS,
    NO_SERVICE_LINKS,
    container_resources,
    with_container_settings,
    with_pod_settings,
)


def spec_of(graph: Graph, schema: Schema) -> Object:
    """Return the spec of a graph, with the fields that the schema has."""
    return {
        "backendFramework": graph.backend,
        "components": [_component(graph, component, schema) for component in graph.components],
    }


def _component(graph: Graph, component: Component, schema: Schema) -> Object:
    metadata = _nonempty(labels=dict(graph.labels), annotations=dict(graph.annotations))
    pod: Object = {"containers": [_main_container(graph, component)], **NO_SERVICE_LINKS}
    pod |= _nonempty(nodeSelector=dict(graph.node_selector), tolerations=list(graph.tolerations))
    pod = with_pod_settings(pod, graph.spec, runs_engine=component.runs_engine)
    rendered: Object = {
        "name": component.name,
        "type": component.role,
        "replicas": component.replicas,
        "podTemplate": _nonempty(metadata=metadata, spec=pod),
    }
    if not graph.runtime.from_tag and "runtimeVersionOverride" in schema.features:
        rendered["runtimeVersionOverride"] = str(graph.runtime.version)
    return rendered


def _main_container(graph: Graph, component: Component) -> Object:
    resources = container_resources(component.gpu, component.memory, component.cpu, component.cpu_limit)
    container = {"name": "main", "image": component.image, **LAST_WORDS} | _nonempty(
        command=list(component.command),
        args=list(component.args),
        env=list(component.env),
        envFrom=list(graph.secret),
        resources=resources,
    )
    return with_container_settings(container, graph.spec, runs_engine=component.runs_engine)


def _nonempty(**fields: Any) -> Object:
    return {name: value for name, value in fields.items() if value}
