"""The KubeRay provider for the SDK's runtime."""

from __future__ import annotations

import argparse
from functools import partial
from importlib.metadata import version
from typing import Final

from kubefoundry_kuberay.observe import CLUSTER_LABEL, NODE_LABEL, observe
from kubefoundry_kuberay.overrides import Overrides
from kubefoundry_kuberay.probe import probe
from kubefoundry_kuberay.read_back import read_back
from kubefoundry_kuberay.render import recreate, render
from kubefoundry_kuberay.serve_config import as_yaml
from kubefoundry_kuberay.settings import Settings, add_arguments, from_arguments
from kubefoundry_kuberay.status import clusters, must_recreate
from kubefoundry_kuberay.supports import supports
from kubefoundry_sdk import Capabilities, Document, Operator, Pods, Provider, UpstreamKind, from_flags

NAME: Final = "kuberay"

IGNORED_DIFFERENCES: Final = ("spec.rayClusterConfig.workerGroupSpecs[*].replicas",)
"""Ray's autoscaler decides on the number of workers (cluster.py); KubeRay ignores a change of it, too. In a queue of
Kueue, a change recreates the RayService (render.py)."""

_TEMPLATES: Final = ("headGroupSpec.template", "workerGroupSpecs[*].template")
_BY_KUEUE: Final = (
    "metadata.annotations",
    "metadata.labels",
    "spec.nodeSelector",
    "spec.schedulingGates",
    "spec.tolerations",
)

SHARED: Final = (
    "spec.rayClusterConfig.suspend",
    *(f"spec.rayClusterConfig.{template}.{field}" for template in _TEMPLATES for field in _BY_KUEUE),
)
"""Kueue starts a RayService by `suspend`, and adds the placement of its flavor (pkg/podset/podset.go @v0.17.0)."""

OPERATOR: Final = Operator(
    "kuberay-operator", ("kuberay-operator", "ray-system"), lease="ray-operator-leader"
)
"""The Deployment of the documented Helm release, and the id of the leader election (ray-operator/main.go @v1.6.2).
That release is installed into the current namespace, often `default`. An administrator has to name that namespace,
because everybody uses it."""

PODS: Final = Pods(
    CLUSTER_LABEL,
    clusters,
    makers=clusters,
    creation_events="involvedObject.kind=RayCluster,type=Warning",
    roles=(NODE_LABEL,),
)
"""Pods carry their RayCluster's name, and no label of the RayService (KubeRay `controllers/ray/common/pod.go`)."""


SERVE_CONFIG: Final = Document("RayService", ("spec", "serveConfigV2"), as_yaml)

SETTLES: Final = 3.0
"""KubeRay acknowledges a generation as soon as it has passed on the Serve configuration, and reads Serve's reaction 2
s later (seen on 1.6.2: 1.3 s with the old RUNNING)."""


def build(arguments: argparse.Namespace) -> Provider:
    """Return the provider for parsed flags. Raise ValueError for settings that KubeRay cannot have."""
    return provider(from_arguments(arguments))


def with_defaults() -> Provider:
    """Return the provider without flags: the command line renders and explains with it."""
    return provider(Settings())


def provider(settings: Settings) -> Provider:
    """Return the provider, without selection rules: only `spec.provider.name` selects KubeRay (contract §5)."""
    return Provider(
        name=NAME,
        title="KubeRay",
        version=version("kubefoundry-provider-kuberay"),
        contract="0.3",
        documentation="https://docs.ray.io/en/latest/serve/llm/index.html",
        capabilities=Capabilities(
            engines=("vllm",),
            serving_modes=("aggregated", "disaggregated"),
            cpu_support=False,
            gpu_support=True,
        ),
        upstream=UpstreamKind("ray.io", "rayservices", "RayService"),
        probe=probe,
        supports=partial(supports, settings=settings),
        render=partial(render, settings=settings),
        observe=observe,
        overrides=Overrides,
        recreate=recreate,
        must_recreate=must_recreate,
        ignored_differences=IGNORED_DIFFERENCES,
        shared=SHARED,
        settles=SETTLES,
        documents=(SERVE_CONFIG,),
        operator=OPERATOR,
        pods=PODS,
        queued=True,
        read_back=read_back,
        from_flags=partial(from_flags, NAME, build, add_arguments),
    )
