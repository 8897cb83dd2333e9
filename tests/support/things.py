"""A small provider and its upstream, for tests of the runtime in memory."""

from __future__ import annotations

from typing import Any

from kubefoundry_sdk import (
    Capabilities,
    Deployment,
    Endpoint,
    Object,
    Observation,
    Provider,
    Rendered,
    Replicas,
    Schema,
    UpstreamKind,
)

SPEC: dict[str, Any] = {
    "model": {"id": "org/model"},
    "engine": {"type": "llamacpp"},
    "image": "example.com/engine:1",
}


def crd(**spec: Any) -> Object:
    """Return the CRD of the upstream, with further schemas below `spec`."""
    properties = {"image": {"type": "string"}, "replicas": {"type": "integer"}, **spec}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": properties},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing", "plural": "things"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def render(deployment: Deployment, schema: Schema) -> Rendered:
    spec = deployment.spec
    return Rendered(
        {
            "apiVersion": schema.api_version,
            "kind": "Thing",
            "metadata": {"name": deployment.name},
            "spec": {"image": spec.image, "replicas": spec.scaling.replicas},
        }
    )


def observe(deployment: Deployment, thing: Object) -> Observation:
    ready = (thing.get("status") or {}).get("ready", 0)
    replicas, endpoint = Replicas(1, ready, ready), Endpoint(deployment.name, 80)
    if ready:
        return Observation("Running", "DeploymentReady", "it serves", replicas, endpoint)
    return Observation("Deploying", "Progressing", "it starts", replicas, endpoint)


PROVIDER = Provider(
    name="things",
    title="Things",
    version="0.1.0",
    documentation="https://example.com",
    capabilities=Capabilities(("llamacpp",), ("aggregated",), cpu_support=True, gpu_support=False),
    upstream=UpstreamKind("example.com", "things", "Thing"),
    probe=lambda crd: Schema("example.com/v1"),
    supports=lambda deployment, schema: [],
    render=render,
    observe=observe,
)
