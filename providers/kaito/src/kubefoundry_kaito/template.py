"""A template Workspace: KAITO runs the user's image in a pod that we define."""

from __future__ import annotations

from typing import Any, Final

from kubefoundry_kaito import llamacpp, vllm
from kubefoundry_kaito.overrides import overrides_of
from kubefoundry_sdk import Deployment
from kubefoundry_sdk.engine import argv, for_command_line, served_apis
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

CONTAINER: Final = "model"

SHARED_MEMORY: Final = "shared-memory"
SHARED_MEMORY_PATH: Final = "/dev/shm"


def inference(deployment: Deployment, image: str) -> dict[str, Any]:
    """Return the section `inference`: its `template` is a PodTemplateSpec that no schema checks."""
    spec = deployment.spec
    container = with_container_settings(_container(spec, image), spec)
    pod: dict[str, Any] = {"containers": [container], **NO_SERVICE_LINKS}
    if _needs_shared_memory(spec):
        pod["volumes"] = [{"name": SHARED_MEMORY, "emptyDir": {"medium": "Memory"}}]
    if spec.node_selector:
        pod["nodeSelector"] = dict(spec.node_selector)
    if spec.tolerations:
        pod["tolerations"] = [dict(toleration) for toleration in spec.tolerations]
    pod = with_pod_settings(pod, spec)
    if "serviceAccountName" in pod:
        # no engine calls the API server, but an engine may run the code of the model
        pod["automountServiceAccountToken"] = False
    template: dict[str, Any] = {"spec": pod}
    metadata = {
        name: dict(values)
        for name, values in (
            ("labels", with_model_label(spec.pod_template.metadata.labels, deployment.name)),
            ("annotations", spec.pod_template.metadata.annotations),
        )
        if values
    }
    if metadata:
        template["metadata"] = metadata
    return {"template": template}


def own_volumes(spec: ModelDeploymentSpec) -> dict[str, str]:
    """Return the paths at which the volumes of this provider are mounted, by the volumes' names."""
    return {SHARED_MEMORY: SHARED_MEMORY_PATH} if _needs_shared_memory(spec) else {}


def served_name(spec: ModelDeploymentSpec) -> str:
    """Return the model's name in requests, or an empty string if the image decides it (AIKit: the GGUF file)."""
    return "" if _is_aikit(spec) else spec.served_name or ""


def apis(spec: ModelDeploymentSpec) -> tuple[str, ...]:
    """Return the APIs of the server, or none if the image decides them (AIKit)."""
    return () if _is_aikit(spec) else served_apis(spec)


def _is_aikit(spec: ModelDeploymentSpec) -> bool:
    return spec.engine.type == "llamacpp" and overrides_of(spec).llamacpp_server == "aikit"


def notes(spec: ModelDeploymentSpec) -> tuple[str, ...]:
    """Return notes about effects that the spec does not show."""
    if spec.served_name and not served_name(spec):
        return (
            "An AIKit image serves the model under the name of its GGUF file; /v1/models lists the name.",
        )
    return ()


def _container(spec: ModelDeploymentSpec, image: str) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": image,
        **LAST_WORDS,
        "args": _args(spec),
        "ports": [{"containerPort": vllm.PORT}],
        "readinessProbe": _readiness(spec),
    }
    resources = aggregated_resources(spec)
    if resources:
        container["resources"] = resources
    if spec.env:
        container["env"] = [dict(variable) for variable in spec.env]
    if secret := secret_env_from(spec):
        container["envFrom"] = secret
    if _needs_shared_memory(spec):
        container["volumeMounts"] = [{"name": SHARED_MEMORY, "mountPath": SHARED_MEMORY_PATH}]
    return container


def _args(spec: ModelDeploymentSpec) -> list[str]:
    if spec.engine.type == "vllm":
        return argv(
            [*vllm.derived(spec), *vllm.parallelism(spec)],
            for_command_line("vllm", spec.engine.args),
            spec.engine.extra_args,
        )
    return llamacpp.command_line(spec, overrides_of(spec).llamacpp_server)


def _readiness(spec: ModelDeploymentSpec) -> dict[str, Any]:
    """Return the readiness probe; without one KAITO reports a model as ready while it is still being downloaded.

    llama-server opens its port at once, and answers /health with 503 until the model is loaded; the other servers
    open their port when they can serve.
    """
    if spec.engine.type == "llamacpp" and overrides_of(spec).llamacpp_server == "llama-server":
        return {"httpGet": {"path": "/health", "port": vllm.PORT}}
    return {"tcpSocket": {"port": vllm.PORT}}


def _needs_shared_memory(spec: ModelDeploymentSpec) -> bool:
    # vLLM's workers for several GPUs communicate through /dev/shm, which is 64 MiB in a container by default
    return spec.engine.type == "vllm" and spec.gpu_count > 1
