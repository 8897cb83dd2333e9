"""The RayService of a ModelDeployment (sources §3.2)."""

from __future__ import annotations

from typing import Any

from kubefoundry_kuberay.cluster import ray_cluster
from kubefoundry_kuberay.overrides import overrides_of
from kubefoundry_kuberay.roles import scaled_to_zero
from kubefoundry_kuberay.serve_config import serve_config
from kubefoundry_kuberay.settings import OLDEST_RAY, Settings
from kubefoundry_sdk import Deployment, Rendered, Schema


def render(deployment: Deployment, schema: Schema, settings: Settings) -> Rendered:
    """Return the RayService, suspended if no role has replicas. Call it only if `supports` found no problem."""
    spec = deployment.spec
    image = settings.image(spec.image)
    ray_version = settings.ray_version_of(image)
    content: dict[str, Any] = {
        "serveConfigV2": serve_config(spec),
        "rayClusterConfig": ray_cluster(deployment, overrides_of(spec).head, image, ray_version),
    }
    if scaled_to_zero(spec):
        content["suspend"] = True
    main = {
        "apiVersion": schema.api_version,
        "kind": "RayService",
        "metadata": {"name": deployment.name},
        "spec": content,
    }
    return Rendered(main, notes=() if ray_version else (_unknown_ray_version(image),), image=image)


def _unknown_ray_version(image: str) -> str:
    oldest = ".".join(map(str, OLDEST_RAY))
    return (
        f"the tag of image {image} does not say its Ray version: it must contain Ray {oldest} or newer with "
        "ray.serve.llm and vLLM"
    )
