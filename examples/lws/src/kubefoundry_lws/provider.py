"""A provider for LeaderWorkerSets: each replica of a model is a group of pods, one on each node."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.metadata import version
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from kubefoundry_lws.engines import COMMANDS, PLACED, PORT, arguments, derived, sizes
from kubefoundry_lws.status import observe
from kubefoundry_sdk import (
    Capabilities,
    Deployment,
    Object,
    Pods,
    Provider,
    Rendered,
    Schema,
    UpstreamKind,
    from_flags,
    run,
)
from kubefoundry_sdk.crd import Fields, by_fields
from kubefoundry_sdk.engine import contradictions
from kubefoundry_sdk.pod import LAST_WORDS, aggregated_resources, secret_env_from
from kubefoundry_sdk.spec import refused_fields

NAME: Final = "lws"
LABELS: Final = "leaderworkerset.sigs.k8s.io/"
"""Prefix of the labels by which LeaderWorkerSets find their pods."""

LONGEST: Final = 48
"""Longest name, in characters: 51, less one for each further digit of up to 9,999 groups."""

DNS_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
POD: Final = "spec.leaderWorkerTemplate.workerTemplate"
PROBE: Final = partial(
    by_fields,
    {
        "v1": Fields(
            needed=(
                "spec.replicas",
                "spec.leaderWorkerTemplate.size",
                "spec.leaderWorkerTemplate.restartPolicy",
                "spec.leaderWorkerTemplate.leaderTemplate.spec.containers[].args",
                f"{POD}.spec.containers[].args",
                f"{POD}.metadata.labels",
                "status.readyReplicas",
                "status.conditions",
            )
        )
    },
)


class Overrides(BaseModel):
    """Settings in `spec.provider.overrides`."""

    model_config = ConfigDict(extra="ignore")

    nodes: int = Field(default=1, ge=1, le=64, strict=True)
    """The number of nodes that each replica spans."""


def problems(deployment: Deployment, schema: Schema | None, images: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for everything in the spec that the provider cannot do."""
    spec = deployment.spec
    nodes = spec.overrides_as(Overrides).nodes
    if len(deployment.name) > LONGEST or not DNS_LABEL.fullmatch(deployment.name):
        yield (
            f"LeaderWorkerSet makes host names of the name: use at most {LONGEST} lower-case letters, digits and "
            "dashes, a letter first"
        )
    if spec.model.source != "huggingface":
        yield "LeaderWorkerSet starts an engine with a model from the hub: set model.source to huggingface"
    if not (spec.image or images.get(spec.engine.type or "")):
        yield f"LeaderWorkerSet has no default image for {spec.engine.type}: set image"
    if reserved := sorted(name for name in spec.pod_template.metadata.labels if name.startswith(LABELS)):
        yield f"LeaderWorkerSet finds its pods by {', '.join(reserved)}: remove it from podTemplate.metadata.labels"
    yield from refused_fields(
        spec,
        dict.fromkeys(
            (
                "podTemplate.spec",
                "podTemplate.container",
                "model.storage.volumes",
                "model.storage.uri",
                "model.storage.offline",
            ),
            "This provider passes no {field} to LeaderWorkerSet: remove it",
        ),
    )
    for flag in sorted(PLACED & spec.engine.args.keys()):
        yield f'engine.args "{flag}" places a node: remove it, and set provider.overrides.nodes'
    if spec.engine.type in COMMANDS:
        yield from contradictions(derived(spec, nodes), spec.engine.args)
        yield from _indivisible(deployment, nodes)


def _indivisible(deployment: Deployment, nodes: int) -> Iterator[str]:
    """Yield a sentence if the GPUs or the engine's processes cannot be divided by the nodes."""
    gpus, split = deployment.spec.gpu_count, sizes(deployment.spec, nodes)
    if gpus % nodes:
        yield f"{nodes} nodes cannot share {gpus} GPUs equally: make resources.gpu.count a multiple of {nodes}"
    elif nodes > 1 and split.data > 1:
        yield f"data parallelism over {nodes} nodes is not supported: set scaling.replicas instead of its size"
    elif split.tensor * split.pipeline % nodes:
        yield (
            f"parallel sizes tensor {split.tensor} × pipeline {split.pipeline} cannot be divided by {nodes} nodes: "
            "make their product a multiple"
        )


def render(deployment: Deployment, images: Mapping[str, str]) -> Rendered:
    """Return the LeaderWorkerSet, and the Service in front of its leaders."""
    spec = deployment.spec
    image = spec.image or images[spec.engine.type or ""]
    nodes = spec.overrides_as(Overrides).nodes
    main = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": deployment.name},
        "spec": {
            "replicas": spec.scaling.replicas,
            "leaderWorkerTemplate": {
                "size": nodes,
                # An engine that lost a node does not recover: all nodes start again.
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": _pod(deployment, image, nodes, leads=True),
                "workerTemplate": _pod(deployment, image, nodes, leads=False),
            },
        },
    }
    return Rendered(main, helpers=(_service(deployment),), image=image)


def _pod(deployment: Deployment, image: str, nodes: int, *, leads: bool) -> Object:
    spec, metadata = deployment.spec, deployment.spec.pod_template.metadata
    container: dict[str, Any] = {
        "name": "engine",
        "image": image,
        "command": COMMANDS[spec.engine.type or ""],
        "args": arguments(spec, nodes, leads=leads),
        # NCCL exchanges data between the processes of a node by shared memory.
        "volumeMounts": [{"name": "shared-memory", "mountPath": "/dev/shm"}],
        **LAST_WORDS,
    }
    if leads:
        container["ports"] = [{"name": "http", "containerPort": PORT}]
        container["readinessProbe"] = {"httpGet": {"path": "/health", "port": PORT}, "periodSeconds": 10}
    optional = {
        "env": list(spec.env),
        "envFrom": secret_env_from(spec),
        "resources": aggregated_resources(spec, nodes=nodes),
    }
    container |= {name: value for name, value in optional.items() if value}
    pod: dict[str, Any] = {
        "enableServiceLinks": False,
        "containers": [container],
        "volumes": [{"name": "shared-memory", "emptyDir": {"medium": "Memory"}}],
    }
    if spec.node_selector:
        pod["nodeSelector"] = dict(spec.node_selector)
    if spec.tolerations:
        pod["tolerations"] = list(spec.tolerations)
    labels = {**metadata.labels, "kubefoundry.ai/modeldeployment": deployment.name}
    return {"metadata": {"labels": labels, "annotations": dict(metadata.annotations)}, "spec": pod}


def _service(deployment: Deployment) -> Object:
    """Return the Service of the leaders. The one that LWS creates has the set's name and selects all pods."""
    leaders = {f"{LABELS}name": deployment.name, f"{LABELS}worker-index": "0"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"{deployment.name}-leader"},
        "spec": {"selector": leaders, "ports": [{"name": "http", "port": PORT, "targetPort": PORT}]},
    }


def provider(images: Mapping[str, str]) -> Provider:
    return Provider(
        name=NAME,
        title="LeaderWorkerSet",
        version=version("kubefoundry-provider-lws"),
        documentation="https://lws.sigs.k8s.io/",
        capabilities=Capabilities(
            engines=("vllm", "sglang"), serving_modes=("aggregated",), cpu_support=False, gpu_support=True
        ),
        upstream=UpstreamKind("leaderworkerset.x-k8s.io", "leaderworkersets", "LeaderWorkerSet"),
        probe=PROBE,
        supports=lambda deployment, schema: list(problems(deployment, schema, images)),
        render=lambda deployment, schema: render(deployment, images),
        observe=observe,
        overrides=Overrides,
        helper_kinds=("Service",),
        pods=Pods(f"{LABELS}name", lambda live: [live["metadata"]["name"]]),
        from_flags=partial(from_flags, NAME, build, None),
    )


def build(arguments: argparse.Namespace) -> Provider:
    return provider(arguments.default_images)


def with_defaults() -> Provider:
    """Return the provider without flags, for the command line and the conformance kit."""
    return provider({})


def with_images() -> Provider:
    """Return the provider with default images, which the conformance kit needs for REN-7."""
    return provider({"vllm": "example.com/vllm:1", "sglang": "example.com/sglang:1"})


def main() -> int:
    return run(NAME, build)
