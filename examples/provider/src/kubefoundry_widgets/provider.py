"""A whole provider: ModelDeployments as Widgets of an imaginary upstream (see docs/writing-a-provider.md)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.metadata import version
from typing import Final

from kubefoundry_sdk import (
    Capabilities,
    Deployment,
    Endpoint,
    Object,
    Observation,
    ObservedPhase,
    Provider,
    ReadyReason,
    Rendered,
    Replicas,
    Schema,
    SelectionRule,
    UnsupportedSchema,
    UpstreamKind,
    from_flags,
    run,
)
from kubefoundry_sdk.crd import Fields, by_fields
from kubefoundry_sdk.spec import ModelDeploymentSpec, refused_fields
from kubefoundry_sdk.status import count, mapping, text

NAME: Final = "widgets"
API_VERSION: Final = "example.com/v1"
NEEDED: Final = tuple(
    f"spec.{name}" for name in ("model", "servedName", "image", "replicas", "gpus", "flags", "env")
)

NO_PLACE: Final = (
    "engine.extraArgs",
    "resources.cpu",
    "resources.cpuLimit",
    "resources.memory",
    "podTemplate.metadata.labels",
    "podTemplate.metadata.annotations",
    "podTemplate.spec",
    "podTemplate.container",
    "model.storage.volumes",
    "model.storage.uri",
    "model.storage.offline",
    "secrets.huggingFaceToken",
    "nodeSelector",
    "tolerations",
)

STATES: Final[Mapping[str, tuple[ObservedPhase, ReadyReason]]] = {
    "": ("Pending", "Progressing"),
    "Starting": ("Deploying", "Progressing"),
    "Serving": ("Running", "DeploymentReady"),
    "Broken": ("Failed", "Failed"),
}


def probe(crd: Object) -> Schema | UnsupportedSchema:
    """Return the schema of the installed CRD, or the fields that it lacks."""
    return by_fields({"v1": Fields(NEEDED)}, crd)


def problems(spec: ModelDeploymentSpec, images: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for every unsupported field, so that no field is dropped silently."""
    if not (spec.image or images.get(spec.engine.type or "")):
        yield f"Widgets has no default image for {spec.engine.type}: set image"
    if spec.resources.gpu and spec.resources.gpu.type != "nvidia.com/gpu":
        yield f"Widgets has no place for resources.gpu.type {spec.resources.gpu.type}: only nvidia.com/gpu"
    yield from refused_fields(spec, dict.fromkeys(NO_PLACE, "Widgets has no place for {field}: remove it"))


def render(deployment: Deployment, images: Mapping[str, str]) -> Rendered:
    """Return the Widget. The runtime adds namespace, owner and KubeFoundry's labels."""
    spec = deployment.spec
    flags = dict(spec.engine.args)
    if spec.engine.context_length is not None:
        flags["max-model-len"] = str(spec.engine.context_length)
    if spec.engine.trust_remote_code:
        flags["trust-remote-code"] = "true"
    image = spec.image or images[spec.engine.type or ""]
    content = {
        "model": spec.model.id,
        "servedName": spec.served_name,
        "image": image,
        "replicas": spec.scaling.replicas,
        "gpus": spec.gpu_count,
        "flags": flags,
        "env": spec.env,
    }
    return Rendered(
        {
            "apiVersion": API_VERSION,
            "kind": "Widget",
            "metadata": {"name": deployment.name},
            "spec": {name: value for name, value in content.items() if value is not None},
        },
        image=image,
    )


def observe(deployment: Deployment, widget: Object) -> Observation:
    """Return the Widget's status in KubeFoundry's terms. An unknown state is `Unknown`, never an exception."""
    status = mapping(widget.get("status"))
    state, ready = text(status.get("state")), count(status.get("ready")) or 0
    phase, reason = STATES.get(state, ("Deploying", "Unknown"))
    if deployment.spec.scaling.replicas == 0 and ready == 0:
        phase, reason = "Pending", "ScaledToZero"
    elif phase == "Running" and ready == 0:
        phase, reason = "Deploying", "Progressing"
    return Observation(
        phase=phase,
        reason=reason,
        message=text(status.get("message")) or f"Widget is {state or 'not taken up yet'}",
        replicas=Replicas(deployment.spec.scaling.replicas, ready, ready),
        endpoint=Endpoint(deployment.name, 8000, model=deployment.spec.served_name or ""),
    )


def provider(images: Mapping[str, str]) -> Provider:
    return Provider(
        name=NAME,
        title="Widgets",
        version=version("kubefoundry-provider-widgets"),
        contract="0.3",
        documentation="https://example.com/widgets",
        capabilities=Capabilities(
            engines=("vllm",), serving_modes=("aggregated",), cpu_support=False, gpu_support=True
        ),
        upstream=UpstreamKind("example.com", "widgets", "Widget"),
        probe=probe,
        supports=lambda deployment, schema: list(problems(deployment.spec, images)),
        render=lambda deployment, schema: render(deployment, images),
        observe=observe,
        selection_rules=(
            SelectionRule("metadata.namespace.startsWith('edge-')", priority=200, reason="edge → widgets"),
        ),
        from_flags=partial(from_flags, NAME, build, None),
    )


def build(arguments: argparse.Namespace) -> Provider:
    return provider(arguments.default_images)


def with_defaults() -> Provider:
    """Return the provider without flags, for the command line and the conformance kit."""
    return provider({})


def main() -> int:
    return run(NAME, build)
