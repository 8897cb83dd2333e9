"""Problems of a deployment that KubeRay cannot run, beyond engine, mode and CPU/GPU (contract §2; sources §3.3)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

from kubefoundry_kuberay import engine_kwargs
from kubefoundry_kuberay.cluster import MAX_WORKERS, OWN_VOLUMES
from kubefoundry_kuberay.overrides import overrides_of
from kubefoundry_kuberay.probe import CLAIMS, IMAGE_VOLUMES, SUSPEND
from kubefoundry_kuberay.roles import roles, scaled_to_zero
from kubefoundry_kuberay.serve_config import MAX_BUNDLES
from kubefoundry_kuberay.settings import OLDEST_RAY, Settings, as_version
from kubefoundry_sdk import Deployment, Schema
from kubefoundry_sdk.pod import label_problems, volume_problems
from kubefoundry_sdk.spec import ModelDeploymentSpec, parse_quantity

MAX_NAME: Final = 47
"""Longest name of a RayService (sources §3.3, KubeRay 1.4 and later)."""

_DNS_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def supports(deployment: Deployment, schema: Schema | None, settings: Settings) -> list[str]:
    """Return a sentence for each problem. Raise pydantic's ValidationError if overrides have wrong types."""
    spec = deployment.spec
    return [
        *_name(deployment.name),
        *_model(spec),
        *_gpus(spec),
        *_replicas(spec, schema),
        *engine_kwargs.problems(spec),
        *_image(spec, settings),
        *_labels(spec),
        *_head(spec),
        *volume_problems(spec, "KubeRay", OWN_VOLUMES),
        *_older_pods(spec, schema),
    ]


def _name(name: str) -> Iterator[str]:
    if len(name) > MAX_NAME:
        yield (
            f"KubeRay names have at most {MAX_NAME} characters, but {name} has {len(name)}: "
            "create the ModelDeployment under a shorter name"
        )
    if not _DNS_1035.fullmatch(name):
        yield (
            f"KubeRay names begin with a letter and contain only lower-case letters, digits and inner dashes, "
            f"but {name} does not: create the ModelDeployment under another name"
        )


def _model(spec: ModelDeploymentSpec) -> Iterator[str]:
    if spec.model.source == "custom":
        yield (
            "KubeRay does not support model.source custom: Ray Serve needs to know what to load; "
            "use source huggingface, where model.id may be a path inside the image"
        )
    elif not spec.served_name:
        yield f"KubeRay needs a name for the model, but model.id {spec.model.id} gives none: set model.servedName"


def _gpus(spec: ModelDeploymentSpec) -> Iterator[str]:
    for role in roles(spec):
        if role.exclusive and role.gpus == 0:
            yield f"KubeRay requires GPU (set scaling.{role.name}.gpu.count > 0)"
        elif role.exclusive and math.prod(engine_kwargs.parallel_sizes(spec, role)) > MAX_BUNDLES:
            yield (
                f"KubeRay supports at most {MAX_BUNDLES} GPUs for each replica here, "
                f"scaling.{role.name}.gpu.count is {role.gpus}: lower it"
            )


def _replicas(spec: ModelDeploymentSpec, schema: Schema | None) -> Iterator[str]:
    for role in roles(spec):
        field = f"scaling.{role.name}.replicas" if role.exclusive else "scaling.replicas"
        if role.replicas > MAX_WORKERS:
            yield f"KubeRay supports at most {MAX_WORKERS} replicas here, {field} is {role.replicas}: lower it"
        if role.replicas == 0 and not scaled_to_zero(spec):
            yield (
                f"KubeRay does not support {field} 0 alone: Ray Serve runs at least one replica of each role; "
                "set it to 1 or more, or both roles to 0"
            )
    if scaled_to_zero(spec) and schema is not None and SUSPEND not in schema.features:
        yield (
            "KubeRay cannot scale to zero here: the installed RayService CRD has no spec.suspend; "
            "install KubeRay 1.7 or newer, or request at least 1 replica"
        )


def _image(spec: ModelDeploymentSpec, settings: Settings) -> Iterator[str]:
    for gpu_type in sorted({role.gpu_type for role in roles(spec) if role.gpus}):
        if not settings.is_for(gpu_type, spec.image):
            yield f"KubeRay has no default image of {spec.engine.type} for {gpu_type}: set image"
    image = settings.image(spec.image)
    version = settings.ray_version_of(image)
    if version and as_version(version)[:2] < OLDEST_RAY:
        oldest = ".".join(map(str, OLDEST_RAY))
        yield f"KubeRay needs an image with Ray {oldest} or newer, {image} has Ray {version}: use a newer image"


def _labels(spec: ModelDeploymentSpec) -> Iterator[str]:
    yield from label_problems(spec.pod_template.metadata.labels, "KubeRay", ("ray.io/",))


def _older_pods(spec: ModelDeploymentSpec, schema: Schema | None) -> Iterator[str]:
    pod, stored = spec.pod_template.spec, spec.model.storage.volumes
    for feature, field, is_set in (
        (IMAGE_VOLUMES, "model.storage.volumes[].image", any(volume.image for volume in stored)),
        (IMAGE_VOLUMES, "podTemplate.spec.volumes[].image", any("image" in volume for volume in pod.volumes)),
        (CLAIMS, "podTemplate.spec.resourceClaims", bool(pod.resource_claims)),
    ):
        if is_set and schema is not None and feature not in schema.features:
            yield (
                f"the installed RayService CRD has no place for {field}: remove it, or install KubeRay 1.3 or newer"
            )


def _head(spec: ModelDeploymentSpec) -> Iterator[str]:
    if overrides_of(spec).head.image_pull_secrets and spec.pod_template.spec.image_pull_secrets:
        yield (
            "provider.overrides.head.imagePullSecrets and podTemplate.spec.imagePullSecrets set the same: "
            "remove the override"
        )
    for field, amount in overrides_of(spec).head.resources:
        try:
            parse_quantity(amount)
        except ValueError as error:
            yield f"provider.overrides head.resources.{field}: {error}"
