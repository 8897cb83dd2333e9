"""A provider for LLMInferenceServices of KServe, on vLLM and behind KServe's gateway."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.metadata import version
from typing import Any, Final

from kubefoundry_kserve.status import observe
from kubefoundry_sdk import Capabilities, Deployment, Pods, Provider, Rendered, Schema, UpstreamKind, run
from kubefoundry_sdk.crd import Fields, by_fields
from kubefoundry_sdk.engine import Derived, argv, parallel
from kubefoundry_sdk.pod import LAST_WORDS, aggregated_resources
from kubefoundry_sdk.spec import ModelDeploymentSpec, refused_fields

NAME: Final = "kserve"
CONTAINER: Final = "main"
"""Name of the container in KServe's template, into which KServe merges ours."""

WEIGHTS: Final = "/mnt/models"
"""Folder into which KServe's storage initializer downloads the model."""

PORT: Final = 8000

LABELS: Final = "labels"
PROBE: Final = partial(
    by_fields,
    {
        "v1alpha1": Fields(
            needed=(
                "spec.model.uri",
                "spec.model.name",
                "spec.replicas",
                "spec.template.containers[].args",
                "spec.router.route",
                "spec.router.gateway",
                "status.url",
            ),
            optional={LABELS: "spec.labels"},
            lost={LABELS: "labels and annotations of pods"},
        )
    },
)

NO_PLACE: Final[Mapping[str, str]] = {
    "secrets.huggingFaceToken": "KServe downloads the model before the engine starts, with a token from its own "
    "ServiceAccount: remove {field}, and give the token to KServe",
    **dict.fromkeys(
        (
            "podTemplate.spec",
            "podTemplate.container",
            "model.storage.volumes",
            "model.storage.uri",
            "model.storage.offline",
        ),
        "This provider passes no {field} to KServe: remove it",
    ),
}
OVERRIDDEN: Final = frozenset(
    {"app.kubernetes.io/name", "app.kubernetes.io/part-of", "app.kubernetes.io/component"}
)
"""Labels by which KServe finds its pods."""

WORKLOAD: Final = {"app.kubernetes.io/component": "llminferenceservice-workload"}

DNS_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def problems(deployment: Deployment, schema: Schema | None) -> Iterator[str]:
    spec, metadata = deployment.spec, deployment.spec.pod_template.metadata
    if not DNS_LABEL.fullmatch(deployment.name):
        yield "KServe makes Services and labels of the name: at most 63 letters, digits and dashes, a letter first"
    if spec.model.source != "huggingface":
        yield "KServe downloads the model itself: set model.source to huggingface"
    if schema is not None and LABELS not in schema.features and (metadata.labels or metadata.annotations):
        yield "This release of KServe has no place for podTemplate: remove it, or upgrade KServe"
    if reserved := sorted(
        name for name in metadata.labels if name in OVERRIDDEN or name.startswith("kserve.io/")
    ):
        yield f"KServe finds its pods by {', '.join(reserved)}: remove it from podTemplate.metadata.labels"
    yield from refused_fields(spec, NO_PLACE)


def render(deployment: Deployment, schema: Schema) -> Rendered:
    spec, metadata = deployment.spec, deployment.spec.pod_template.metadata
    content: dict[str, Any] = {
        "model": {"uri": f"hf://{spec.model.id}", "name": spec.served_name},
        "replicas": spec.scaling.replicas,
        "template": _pod(spec),
        # Empty, so that KServe creates the route and uses its own gateway.
        "router": {"route": {}, "gateway": {}},
    }
    if metadata.labels:
        content["labels"] = dict(metadata.labels)
    if metadata.annotations:
        content["annotations"] = dict(metadata.annotations)
    main = {
        "apiVersion": schema.api_version,
        "kind": "LLMInferenceService",
        "metadata": {"name": deployment.name},
        "spec": content,
    }
    return Rendered(main, image=spec.image)


def _pod(spec: ModelDeploymentSpec) -> dict[str, Any]:
    trust = str(spec.engine.trust_remote_code).lower()
    derived = [
        Derived("served-model-name", spec.served_name or "", "model.servedName"),
        Derived("port", str(PORT), "KServe"),
        Derived("trust-remote-code", trust, "engine.trustRemoteCode", switch=True),
    ]
    if spec.engine.context_length is not None:
        derived.append(Derived("max-model-len", str(spec.engine.context_length), "engine.contextLength"))
    sizes = parallel(spec.engine.type, spec.engine.args, spec.gpu_count)
    if sizes.tensor > 1:
        derived.append(Derived("tensor-parallel-size", str(sizes.tensor), "resources.gpu.count"))
    container: dict[str, Any] = {
        "name": CONTAINER,
        # Both are set, because a release of KServe starts vLLM through a shell, which would expand the arguments.
        "command": ["vllm", "serve", WEIGHTS],
        "args": argv(derived, spec.engine.args, spec.engine.extra_args),
        **LAST_WORDS,
    }
    if spec.image:
        container["image"] = spec.image
    if spec.env:
        container["env"] = list(spec.env)
    if resources := aggregated_resources(spec):
        container["resources"] = resources
    pod: dict[str, Any] = {"containers": [container]}
    if spec.node_selector:
        pod["nodeSelector"] = dict(spec.node_selector)
    if spec.tolerations:
        pod["tolerations"] = list(spec.tolerations)
    return pod


def provider() -> Provider:
    return Provider(
        name=NAME,
        title="KServe",
        version=version("kubefoundry-provider-kserve"),
        contract="0.3",
        documentation="https://kserve.github.io/website/",
        capabilities=Capabilities(
            engines=("vllm",), serving_modes=("aggregated",), cpu_support=False, gpu_support=True
        ),
        upstream=UpstreamKind("serving.kserve.io", "llminferenceservices", "LLMInferenceService"),
        probe=PROBE,
        supports=lambda deployment, schema: list(problems(deployment, schema)),
        render=render,
        observe=observe,
        pods=Pods("app.kubernetes.io/name", lambda live: [live["metadata"]["name"]], also=WORKLOAD),
    )


def build(arguments: argparse.Namespace) -> Provider:
    return provider()


def with_defaults() -> Provider:
    """Return the provider without flags, for the command line and the conformance kit."""
    return provider()


def main() -> int:
    return run(NAME, build)
