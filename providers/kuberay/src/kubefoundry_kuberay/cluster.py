"""`spec.rayClusterConfig`: the head, and a group of workers for each role (sources §3.2, §3.6).

Ray's own autoscaler is on, because KubeRay ignores a change of a group's `replicas` (its hash leaves them out): a
new count reaches Serve through `serveConfigV2`, and Ray then adds or removes workers in the running cluster. Any
other way creates a second RayCluster with all its GPUs. With a queue of Kueue the autoscaler is off, because Kueue
refuses it.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, Final

from kubefoundry_kuberay.overrides import Head
from kubefoundry_kuberay.roles import Role, roles
from kubefoundry_sdk import Deployment
from kubefoundry_sdk.pod import (
    LAST_WORDS,
    NO_SERVICE_LINKS,
    QUEUE_LABEL,
    Resources,
    container_resources,
    secret_env_from,
    with_container_settings,
    with_model_label,
    with_pod_settings,
)
from kubefoundry_sdk.spec import GpuSpec, parse_quantity

MAX_WORKERS: Final = 1000
"""Most workers of a group: constant, because KubeRay ignores a change of it, too."""

SERVE_CPUS: Final = 2
"""Ray CPUs that a worker needs in addition to one for each engine: Serve's ingress, and the proxy of older Rays'
P/D."""

TOLERATIONS_ANNOTATION: Final = "kubefoundry.ai/tolerations"
"""Digest of the tolerations on the pod templates: KubeRay 1.6 and later leave tolerations out of their hash."""

OWN_VOLUMES: Final = {"shared-mem": "/dev/shm", "ray-logs": "/tmp/ray"}
"""Volumes that KubeRay adds to pods, with the paths of their mounts (addEmptyDir in controllers/ray/common/pod.go
@v1.6.0)."""

_HEAD_PORTS: Final = (("gcs-server", 6379), ("dashboard", 8265), ("client", 10001), ("serve", 8000))
"""Without a port called `serve` KubeRay creates no Serve Service (sources §3.2)."""


def ray_cluster(deployment: Deployment, head: Head, image: str, ray_version: str | None) -> dict[str, Any]:
    """Return `rayClusterConfig`: a head without engines, and a group of workers for each role.

    Args:
        deployment: The deployment.
        head: Resources and start parameters of the head.
        image: The image of head and workers.
        ray_version: The Ray version in the image; None if unknown: the field is then left out.
    """
    cluster: dict[str, Any] = {
        **_autoscaler(deployment),
        "headGroupSpec": _head_group(deployment, head, image),
        "workerGroupSpecs": [_worker_group(deployment, role, image) for role in roles(deployment.spec)],
    }
    if ray_version:
        cluster["rayVersion"] = ray_version
    return cluster


def is_queued(deployment: Deployment) -> bool:
    """Check whether Kueue starts the RayService once its queue has quota."""
    return QUEUE_LABEL in deployment.propagated_labels


def _autoscaler(deployment: Deployment) -> dict[str, Any]:
    """Return the settings of Ray's autoscaler, which is off in a queue.

    It is a second container in the head, with the same security context.
    """
    if is_queued(deployment):
        return {}
    container = with_container_settings({}, deployment.spec, runs_engine=False)
    return {"enableInTreeAutoscaling": True, **({"autoscalerOptions": container} if container else {})}


def _head_group(deployment: Deployment, head: Head, image: str) -> dict[str, Any]:
    cpu, memory = head.resources.cpu, head.resources.memory
    # A quota of CPU limits counts every container, so the head has a limit if the workers have one.
    cpu_limit = None if roles(deployment.spec)[0].cpu_limit is None else cpu
    container = {
        "name": "ray-head",
        "image": image,
        "ports": [{"name": name, "containerPort": port} for name, port in _HEAD_PORTS],
        "resources": container_resources(None, memory, cpu, cpu_limit),
    }
    template = _pod_template(deployment, container, runs_engine=False)
    # The head keeps the ServiceAccount that KubeRay creates for the autoscaler. KubeRay would give a stated one the
    # permissions of the autoscaler, and the workers run the model with that ServiceAccount.
    template["spec"].pop("serviceAccountName", None)
    if head.image_pull_secrets:
        # for its autoscaler KubeRay gives the head a new ServiceAccount, which has no imagePullSecrets
        template["spec"]["imagePullSecrets"] = [{"name": name} for name in head.image_pull_secrets]
    return {
        # no Ray CPUs, or Serve would put replicas on the head
        "rayStartParams": {"num-cpus": "0"} | head.ray_start_params,
        "template": template,
    }


def _worker_group(deployment: Deployment, role: Role, image: str) -> dict[str, Any]:
    workers = max(1, role.replicas)
    return {
        "groupName": role.name,
        "replicas": workers,
        "minReplicas": 0,
        "maxReplicas": MAX_WORKERS,
        "rayStartParams": _worker_start_params(role),
        "template": _worker_template(deployment, role, image),
    }


def _worker_template(deployment: Deployment, role: Role, image: str) -> dict[str, Any]:
    container = {"name": "ray-worker", "image": image, "resources": _worker_resources(role)}
    template = _pod_template(deployment, container, runs_engine=True)
    if "serviceAccountName" in template["spec"]:
        # no worker calls the API server, but a worker runs the code of the model
        template["spec"]["automountServiceAccountToken"] = False
    return template


def _worker_start_params(role: Role) -> dict[str, str]:
    """Return the parameters of `ray start`.

    Ray CPUs only serve placement, but the autoscaler refuses a group without any.
    """
    cores = math.ceil(parse_quantity(role.cpu)) if role.cpu is not None else 0
    params = {"num-cpus": str(max(cores, role.gpus + SERVE_CPUS)), "num-gpus": str(role.gpus)}
    if role.exclusive:
        # in double quotes, with the inner ones escaped: KubeRay puts it on a shell's command line, and Ray's
        # autoscaler reads no other form (ray/autoscaler/_private/kuberay/autoscaling_config.py)
        escaped = json.dumps({role.name: role.gpus}).replace('"', '\\"')
        params["resources"] = f'"{escaped}"'
    return params


def _worker_resources(role: Role) -> Resources:
    return container_resources(
        GpuSpec(count=role.gpus, type=role.gpu_type), role.memory, role.cpu, role.cpu_limit
    )


def _pod_template(deployment: Deployment, container: dict[str, Any], *, runs_engine: bool) -> dict[str, Any]:
    """Return the pod template of head or workers: the head builds the application, the workers run it."""
    spec = deployment.spec
    if spec.env:
        container["env"] = spec.env
    if secret := secret_env_from(spec):
        container["envFrom"] = secret
    container = with_container_settings({**container, **LAST_WORDS}, spec, runs_engine=runs_engine)
    pod: dict[str, Any] = {"containers": [container], **NO_SERVICE_LINKS}
    annotations = dict(spec.pod_template.metadata.annotations)
    if spec.node_selector:
        pod["nodeSelector"] = dict(spec.node_selector)
    if spec.tolerations:
        pod["tolerations"] = spec.tolerations
        annotations[TOLERATIONS_ANNOTATION] = _digest(spec.tolerations)
    pod = with_pod_settings(pod, spec, runs_engine=runs_engine)
    labels = with_model_label(spec.pod_template.metadata.labels, deployment.name)
    stated = {"labels": labels, "annotations": annotations}
    metadata = {name: values for name, values in stated.items() if values}
    return {"metadata": metadata, "spec": pod} if metadata else {"spec": pod}


def _digest(tolerations: list[dict[str, Any]]) -> str:
    each = sorted(json.dumps(toleration, sort_keys=True) for toleration in tolerations)
    return hashlib.sha256("\n".join(each).encode()).hexdigest()[:16]
