"""Problems of a deployment that Dynamo cannot run, although engine, mode and overrides are valid."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from kubefoundry_dynamo.engines import sglang, trtllm, vllm
from kubefoundry_dynamo.engines.command_line import states_any
from kubefoundry_dynamo.graph import FRONTEND, OWN_VOLUMES, pools
from kubefoundry_dynamo.overrides import ROUTER_MODE_ENV, overrides_of
from kubefoundry_dynamo.probe import CLAIMS
from kubefoundry_dynamo.render import image_and_runtime
from kubefoundry_dynamo.settings import Settings
from kubefoundry_dynamo.versions import OLDEST_RUNTIME, Version, release_line
from kubefoundry_sdk import Deployment, Schema
from kubefoundry_sdk.engine import reserved
from kubefoundry_sdk.pod import is_nvidia, label_problems, volume_problems
from kubefoundry_sdk.spec import ModelDeploymentSpec, refused_fields

MAX_LABEL: Final = 63
"""Longest Service name and longest label value in Kubernetes."""
WORKER_HASH: Final = len("-01234567")
"""Without Grove the operator appends a hash of the worker's spec to its Deployment, its Service and a label value
from 1.0 on (seen on 1.0.1, 1.4 and 1.5). It accepts a longer name, and never starts the worker."""
MAX_WITH_COMPONENT: Final = 45
"""Longest name plus component name on 1.0 and 1.1, with or without Grove (sources §2.3)."""

OWN_LABELS: Final = ("nvidia.com/dynamo-",)
"""Labels by which the operator and its Services find pods; it overwrites them (sources §2.4)."""

ROLE_FLAGS: Final[Mapping[str, tuple[str, ...]]] = {
    "vllm": vllm.ROLE_FLAGS,
    "sglang": sglang.ROLE_FLAGS,
    "trtllm": trtllm.ROLE_FLAGS,
}

NOT_WITHOUT_HUB: Final = {
    "model.storage.uri": (
        "Dynamo's frontend fetches the tokenizer of a model from the hub, and reads no object storage: remove "
        "{field}, or choose another provider"
    ),
    "model.storage.offline": (
        "Dynamo's frontend fetches the tokenizer of a model from the hub, and mounts no volume: remove {field}, or "
        "choose another provider"
    ),
}
"""lib/llm/src/hub.rs of Dynamo reads no HF_HUB_OFFLINE."""


def supports(deployment: Deployment, schema: Schema | None, settings: Settings) -> list[str]:
    """Return a sentence for each problem; those of one release line only if the schema is known."""
    spec = deployment.spec
    labels = label_problems(spec.pod_template.metadata.labels, "Dynamo", OWN_LABELS)
    labels += label_problems(deployment.propagated_labels, "Dynamo", OWN_LABELS, "metadata.labels")
    line = release_line(schema) if schema is not None else None
    problems = [*_name(deployment, line), *_engine_args(spec), *_router(spec), *_resources(spec), *labels]
    problems += volume_problems(spec, "Dynamo", OWN_VOLUMES)
    problems += refused_fields(spec, NOT_WITHOUT_HUB)
    problems += _replicas(spec)
    problems += _image(spec, settings)
    if schema is not None:
        problems += _runtime(deployment, schema, settings)
        if spec.pod_template.container.resource_claims and CLAIMS not in schema.features:
            problems.append(
                "Dynamo before 0.7 has no place for podTemplate.container.resourceClaims: "
                "remove it, or upgrade Dynamo"
            )
    return problems


def _name(deployment: Deployment, line: Version | None) -> Iterator[str]:
    name, namespace = deployment.name, deployment.namespace
    if not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name):
        yield (
            f"name {name} cannot be the beginning of a Service's name, which Dynamo requires: "
            "begin with a letter, and use only lower-case letters, digits and inner dashes"
        )
    suffix, shown = _longest_suffix(deployment.spec, line)
    # A limit of the release is lower than that of the Service, so a name that keeps to it is accepted.
    if line is not None and (of_release := list(_name_on(line, deployment))):
        yield from of_release
    elif len(name) + suffix > MAX_LABEL:
        yield (
            f"name {name} is too long: Dynamo names a Service {name}-{shown}, "
            f"and a Service's name has {MAX_LABEL} characters at most; use at most {MAX_LABEL - suffix}"
        )
    if len(namespace) + 1 + len(name) > MAX_LABEL:
        yield (
            f"name {name} is too long for namespace {namespace}: Dynamo uses {namespace}-{name} as a label value, "
            f"which has {MAX_LABEL} characters at most; use at most {max(MAX_LABEL - 1 - len(namespace), 0)}"
        )


def _longest_suffix(spec: ModelDeploymentSpec, line: Version | None) -> tuple[int, str]:
    """Return the length of the longest suffix that the operator appends to the name, and its form for a message.

    An operator of an unknown release may be a new one.
    """
    longest = max((pool.name for pool in pools(spec)), key=len).lower()
    if line is not None and line < (1, 0):
        return 1 + len(longest), longest
    return 1 + len(longest) + WORKER_HASH, f"{longest}-<8 digits>"


def _name_on(line: Version, deployment: Deployment) -> Iterator[str]:
    longest = max((FRONTEND, *(pool.name for pool in pools(deployment.spec))), key=len)
    if (1, 0) <= line < (1, 2) and len(deployment.name) + len(longest) > MAX_WITH_COMPONENT:
        yield (
            f"name {deployment.name} is too long for Dynamo {line.major}.{line.minor}, which allows "
            f"{MAX_WITH_COMPONENT} characters for it and {longest} together: "
            f"use at most {MAX_WITH_COMPONENT - len(longest)}"
        )


def _replicas(spec: ModelDeploymentSpec) -> Iterator[str]:
    """Refuse a graph without prefill or decode workers, which every request needs.

    The operator reports such a graph as `successful`.
    """
    workers = pools(spec)
    if not any(pool.replicas for pool in workers):
        return
    for pool in workers:
        if pool.replicas == 0:
            yield (
                f"Dynamo does not support scaling.{pool.role}.replicas 0 alone: a request needs prefill and decode "
                "workers; set it to 1 or more, or both roles to 0"
            )


def _engine_args(spec: ModelDeploymentSpec) -> Iterator[str]:
    engine = spec.engine.type or ""
    for name in sorted(spec.engine.args):
        if states_any({name: ""}, ROLE_FLAGS[engine]):
            yield f"engine.args.{name} is set by Dynamo itself, from serving.mode: remove it"
        elif engine == "trtllm":
            yield from _trtllm_arg(name)
    own = (*ROLE_FLAGS[engine], "override-engine-args", "trust-remote-code")
    for written in reserved(own, spec.engine.extra_flags):
        yield f"engine.extraArgs has the flag {written}, which Dynamo sets itself: remove it"


def _trtllm_arg(name: str) -> Iterator[str]:
    if states_any({name: ""}, ("trust-remote-code",)):
        yield f"engine.args.{name} repeats engine.trustRemoteCode: set only that"
    elif states_any({name: ""}, ("override-engine-args",)):
        yield f"engine.args.{name} is set by Dynamo itself: state its keys as engine.args instead"
    elif name.startswith("trtllm."):
        yield (
            f"engine.args.{name} excludes --override-engine-args, which other settings need: "
            "give the key of the engine configuration as engine.args instead"
        )


def _router(spec: ModelDeploymentSpec) -> Iterator[str]:
    in_env = any(variable.get("name") == ROUTER_MODE_ENV for variable in spec.env)
    if in_env and overrides_of(spec).router_mode is not None:
        yield f"provider.overrides.routerMode and env {ROUTER_MODE_ENV} both choose the router mode; remove one"


def _resources(spec: ModelDeploymentSpec) -> Iterator[str]:
    if spec.serving.mode == "aggregated":
        return
    for name, amount in (
        ("memory", spec.resources.memory),
        ("cpu", spec.resources.cpu),
        ("cpuLimit", spec.resources.cpu_limit),
    ):
        if amount is not None:
            yield (
                f"resources.{name} has no meaning in disaggregated mode; remove it "
                "(memory is scaling.prefill.memory and scaling.decode.memory)"
            )


def _image(spec: ModelDeploymentSpec, settings: Settings) -> Iterator[str]:
    """Refuse the default images for GPUs that are not NVIDIA's."""
    if spec.image or spec.engine.type in settings.default_images:
        return
    for gpu_type in sorted({pool.gpu.type for pool in pools(spec) if pool.gpu.count}):
        if not is_nvidia(gpu_type):
            yield f"Dynamo has no default image of {spec.engine.type} for {gpu_type}: set image"


def _runtime(deployment: Deployment, schema: Schema, settings: Settings) -> Iterator[str]:
    image, runtime = image_and_runtime(deployment, schema, settings)
    if runtime.version < OLDEST_RUNTIME:
        yield (
            f"image {image} contains Dynamo {runtime.version}, but the worker flags of versions before "
            f"{OLDEST_RUNTIME.major}.{OLDEST_RUNTIME.minor} are not supported: "
            "use a newer image, or state its Dynamo version in provider.overrides.runtimeVersion"
        )
