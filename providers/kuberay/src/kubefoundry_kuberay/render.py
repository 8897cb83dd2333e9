"""The RayService of a ModelDeployment (sources §3.2)."""

from __future__ import annotations

from typing import Any, Final

from kubefoundry_kuberay.cluster import is_queued, ray_cluster
from kubefoundry_kuberay.overrides import overrides_of
from kubefoundry_kuberay.roles import roles, scaled_to_zero
from kubefoundry_kuberay.serve_config import serve_config
from kubefoundry_kuberay.settings import OLDEST_RAY, Settings
from kubefoundry_sdk import Deployment, Rendered, Schema
from kubefoundry_sdk.pod import storage_notes
from kubefoundry_sdk.status import mapping

QUEUED: Final = (
    "in a queue of Kueue, Ray's autoscaler is off, and a change of replicas or pods recreates the RayService, which "
    "then waits for quota"
)


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
    notes = [] if ray_version else [_unknown_ray_version(image)]
    if is_queued(deployment):
        notes.append(QUEUED)
    notes += storage_notes(spec, sum(role.replicas for role in roles(spec)))
    return Rendered(main, notes=tuple(notes), image=image)


def recreate(old: Rendered, new: Rendered) -> str | None:
    """Return why the RayService has to be recreated, None if KubeRay makes the change in place.

    Kueue suspends a queued RayService whose pods or replicas change, and KubeRay 1.6 goes on reporting it as ready,
    so Kueue never starts it again (seen with Kueue 0.17).
    """
    before, after = (mapping(rendered.main.get("spec")).get("rayClusterConfig") for rendered in (old, new))
    in_queue = not all(mapping(cluster).get("enableInTreeAutoscaling") for cluster in (before, after))
    return "Kueue does not restart a RayService whose pods change" if in_queue and before != after else None


def _unknown_ray_version(image: str) -> str:
    oldest = ".".join(map(str, OLDEST_RAY))
    return (
        f"the tag of image {image} does not say its Ray version: it must contain Ray {oldest} or newer with "
        "ray.serve.llm and vLLM"
    )
