"""The pods: one container with the engine's own server, valid under Pod Security `restricted`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_direct.engines.engine import Engine
from kubefoundry_direct.engines.known import engine_of
from kubefoundry_direct.engines.trtllm import OPTIONS_FILE
from kubefoundry_direct.names import CONTAINER, OPTIONS_ANNOTATION, PORT, PORT_NAME, SELECTED_BY
from kubefoundry_direct.overrides import CLUSTER, Cluster, Overrides, overrides_of
from kubefoundry_direct.probes import probes
from kubefoundry_sdk import Deployment
from kubefoundry_sdk.pod import (
    LAST_WORDS,
    NO_SERVICE_LINKS,
    aggregated_resources,
    secret_env_from,
    with_container_settings,
    with_model_label,
    with_pod_settings,
)
from kubefoundry_sdk.spec import ModelDeploymentSpec

CACHE: Final = "/cache"

ENVIRONMENT: Final[Mapping[str, str]] = {
    "HOME": CACHE,
    "HF_HOME": f"{CACHE}/huggingface",
    "LLAMA_CACHE": f"{CACHE}/llama.cpp",
    "USER": "kubefoundry",
}
"""Where the engines store what they download and compile. The user has no entry in the image's /etc/passwd: without
USER, torch fails when it looks up the name (getpass.getuser)."""

OWN_VOLUMES: Final = frozenset({"cache", "shared-memory", "engine-options"})
"""Names of the volumes that a pod may have without a statement of the user."""

ENDING: Final = 30
"""Seconds that a server has to shut down after SIGTERM."""


def template(deployment: Deployment, image: str, user: int | Cluster) -> dict[str, Any]:
    """Return `spec.template` of the Deployment, whose pods run as that user unless the spec states another one."""
    spec = deployment.spec
    stated = spec.pod_template.metadata
    options = engine_of(spec).options(spec)
    annotations = dict(stated.annotations)
    if options:
        annotations[OPTIONS_ANNOTATION] = json.dumps(options, sort_keys=True)
    labels = with_model_label(stated.labels, deployment.name)
    metadata: dict[str, Any] = {"labels": {**labels, SELECTED_BY: deployment.name}}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": _pod(spec, image, engine_of(spec), user)}


def _pod(
    spec: ModelDeploymentSpec, image: str, engine: Engine, default_user: int | Cluster
) -> dict[str, Any]:
    overrides = overrides_of(spec)
    volumes, mounts = _volumes(spec, engine, overrides)
    by_override = default_user if overrides.run_as_user is None else overrides.run_as_user
    user = spec.pod_template.spec.security_context.get("runAsUser", by_override)
    pod: dict[str, Any] = {
        "containers": [with_container_settings(_container(spec, image, engine, overrides, mounts), spec)],
        "volumes": volumes,
        "terminationGracePeriodSeconds": overrides.drain_seconds + ENDING,
        # The pod calls no API server.
        "automountServiceAccountToken": False,
        **NO_SERVICE_LINKS,
        "securityContext": security_context(user),
    }
    if spec.node_selector:
        pod["nodeSelector"] = dict(spec.node_selector)
    if spec.tolerations:
        pod["tolerations"] = [_without_empty(toleration) for toleration in spec.tolerations]
    if overrides.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in overrides.image_pull_secrets]
    if overrides.runtime_class_name:
        pod["runtimeClassName"] = overrides.runtime_class_name
    return with_pod_settings(pod, spec)


def security_context(user: int | Cluster) -> dict[str, Any]:
    """Return the security context of pods that run as a user, with a group of the same id.

    With CLUSTER it states neither, but still that the user is not root.
    """
    if user == CLUSTER:
        return {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "runAsNonRoot": user != 0,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _container(
    spec: ModelDeploymentSpec,
    image: str,
    engine: Engine,
    overrides: Overrides,
    mounts: list[dict[str, Any]],
) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": image,
        **LAST_WORDS,
        "args": engine.arguments(spec),
        "ports": [{"name": PORT_NAME, "containerPort": PORT, "protocol": "TCP"}],
        "env": _environment(spec),
        "volumeMounts": mounts,
        **probes(overrides.startup_seconds),
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    # An image that contains its model starts the server itself.
    command = overrides.command or (engine.command if spec.model.source == "huggingface" else ())
    if command:
        container["command"] = list(command)
    if secret := secret_env_from(spec):
        container["envFrom"] = secret
    if resources := aggregated_resources(spec):
        container["resources"] = resources
    if overrides.drain_seconds:
        # The pod is no longer in the Service at that time, so only open requests have to finish.
        wait = ["sleep", str(overrides.drain_seconds)]
        container["lifecycle"] = {"preStop": {"exec": {"command": wait}}}
    return container


def _environment(spec: ModelDeploymentSpec) -> list[dict[str, Any]]:
    stated = {variable["name"] for variable in spec.env}
    ours = [{"name": name, "value": value} for name, value in ENVIRONMENT.items() if name not in stated]
    return [*ours, *map(_without_empty, spec.env)]


def _without_empty(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping without empty strings, which the API server drops."""
    return {name: value for name, value in part.items() if value != ""}


def own_volumes(spec: ModelDeploymentSpec) -> dict[str, str]:
    """Return the paths at which the volumes of this provider are mounted, by the volumes' names."""
    _, mounts = _volumes(spec, engine_of(spec), overrides_of(spec))
    return {mount["name"]: mount["mountPath"] for mount in mounts}


def _volumes(
    spec: ModelDeploymentSpec, engine: Engine, overrides: Overrides
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the volumes, and their mounts in the container."""
    claim = overrides.cache_claim
    kept: dict[str, Any] = {"persistentVolumeClaim": {"claimName": claim}} if claim else {"emptyDir": {}}
    volumes: list[dict[str, Any]] = [{"name": "cache", **kept}]
    mounts = [{"name": "cache", "mountPath": CACHE}]
    if engine.shared_memory:
        size = {} if overrides.shared_memory is None else {"sizeLimit": str(overrides.shared_memory)}
        volumes.append({"name": "shared-memory", "emptyDir": {"medium": "Memory", **size}})
        mounts.append({"name": "shared-memory", "mountPath": "/dev/shm"})
    if engine.options(spec):
        folder, _, file = OPTIONS_FILE.rpartition("/")
        source = {"fieldRef": {"fieldPath": f"metadata.annotations['{OPTIONS_ANNOTATION}']"}}
        volumes.append({"name": "engine-options", "downwardAPI": {"items": [{"path": file, **source}]}})
        mounts.append({"name": "engine-options", "mountPath": folder})
    return volumes, mounts
