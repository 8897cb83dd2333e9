"""A deployment as a graph of components, independent of the CRD's version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from kubefoundry_dynamo.engines import sglang, trtllm, vllm
from kubefoundry_dynamo.engines.command_line import Role, Worker
from kubefoundry_dynamo.overrides import ROUTER_MODE_ENV, Overrides, overrides_of, router_mode
from kubefoundry_dynamo.versions import Runtime
from kubefoundry_sdk import Deployment
from kubefoundry_sdk.pod import secret_env_from, with_model_label
from kubefoundry_sdk.spec import ComponentScaling, GpuSpec, ModelDeploymentSpec, Quantity, ResourcesSpec

FRONTEND: Final = "Frontend"
"""Service key or component name that makes the Service `<name>-frontend` (sources §2.4)."""

OWN_VOLUMES: Final = {"shared-memory": "/dev/shm"}
"""Volumes that the operator adds to pods, with the paths of their mounts. It drops others of that name or path
(ApplySharedMemoryVolumeAndMount in internal/dynamo/graph.go)."""

ARGUMENTS: Final[Mapping[str, Callable[[ModelDeploymentSpec, Worker], list[str]]]] = {
    "vllm": vllm.arguments,
    "sglang": sglang.arguments,
    "trtllm": trtllm.arguments,
}


@dataclass(frozen=True, slots=True)
class Pool:
    """One kind of worker as the spec requests it: how many, and the resources of each."""

    name: str
    role: Role
    replicas: int
    gpu: GpuSpec
    memory: Quantity | None
    cpu: Quantity | None
    cpu_limit: Quantity | None


@dataclass(frozen=True, slots=True)
class Component:
    """A Dynamo component; None and empty leave a field to the operator."""

    name: str
    role: Literal["frontend"] | Role
    replicas: int
    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[dict[str, Any], ...] = ()
    memory: Quantity | None = None
    cpu: Quantity | None = None
    cpu_limit: Quantity | None = None
    gpu: GpuSpec | None = None

    @property
    def runs_engine(self) -> bool:
        """Whether the pods load the model."""
        return self.role != "frontend"


@dataclass(frozen=True, slots=True)
class Graph:
    """The components, and the settings that are the same for all of their pods."""

    name: str
    namespace: str
    backend: str
    components: tuple[Component, ...]
    runtime: Runtime
    secret: tuple[dict[str, dict[str, str]], ...]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    node_selector: Mapping[str, str]
    tolerations: tuple[dict[str, Any], ...]
    spec: ModelDeploymentSpec
    """For the settings in `podTemplate`."""


def pools(spec: ModelDeploymentSpec) -> tuple[Pool, ...]:
    """Return the workers that serve the model: one kind, or prefill and decode."""
    if spec.serving.mode == "aggregated":
        return (_pool(spec, "worker", spec.scaling.replicas, spec.resources),)
    prefill, decode = spec.scaling.prefill or ComponentScaling(), spec.scaling.decode or ComponentScaling()
    return (
        _pool(spec, "prefill", prefill.replicas, prefill),
        _pool(spec, "decode", decode.replicas, decode),
    )


def _pool(
    spec: ModelDeploymentSpec, role: Role, replicas: int, amounts: ResourcesSpec | ComponentScaling
) -> Pool:
    """Return a pool of workers, named like `VllmWorker` and `VllmPrefillWorker`."""
    part = "" if role == "worker" else role.capitalize()
    resources = amounts if isinstance(amounts, ResourcesSpec) else ResourcesSpec()
    return Pool(
        f"{(spec.engine.type or '').capitalize()}{part}Worker",
        role,
        replicas,
        amounts.gpu or GpuSpec(),
        amounts.memory,
        resources.cpu,
        resources.cpu_limit,
    )


def graph(deployment: Deployment, image: str, runtime: Runtime) -> Graph:
    """Return the frontend and the workers of a deployment, independent of the version of the CRD."""
    spec = deployment.spec
    engine = spec.engine.type or ""
    mode = router_mode(spec)
    workers = (_worker(spec, pool, image, runtime, mode) for pool in pools(spec))
    return Graph(
        name=deployment.name,
        namespace=deployment.namespace,
        backend=engine,
        components=(_frontend(spec, overrides_of(spec), image, mode), *workers),
        runtime=runtime,
        secret=tuple(secret_env_from(spec)),
        # Kueue has no integration for graphs, and reads the labels of their pods.
        labels=with_model_label(
            {**deployment.propagated_labels, **spec.pod_template.metadata.labels}, deployment.name
        ),
        annotations={**deployment.propagated_annotations, **spec.pod_template.metadata.annotations},
        node_selector=spec.node_selector,
        tolerations=tuple(spec.tolerations),
        spec=spec,
    )


def _frontend(spec: ModelDeploymentSpec, overrides: Overrides, image: str, mode: str | None) -> Component:
    """Return the frontend, without a command.

    The operator's default command starts `dynamo.frontend` on port 8000 (sources §2.2).
    """
    as_stated = mode is None or any(variable.get("name") == ROUTER_MODE_ENV for variable in spec.env)
    resources = overrides.frontend.resources
    return Component(
        name=FRONTEND,
        role="frontend",
        replicas=overrides.frontend.replicas,
        image=image,
        env=tuple(spec.env) if as_stated else (*spec.env, {"name": ROUTER_MODE_ENV, "value": mode}),
        memory=str(resources.memory),
        cpu=str(resources.cpu),
        cpu_limit=None if spec.resources.cpu_limit is None else str(resources.cpu),
    )


def _worker(
    spec: ModelDeploymentSpec, pool: Pool, image: str, runtime: Runtime, mode: str | None
) -> Component:
    engine = spec.engine.type or ""
    # a decode worker holds no prefix that a router could target (sources §2.7: aggregated and prefill)
    worker = Worker(
        pool.role, pool.gpu.count, runtime.version, kv_events=mode == "kv" and pool.role != "decode"
    )
    own_command = spec.model.source == "custom"
    return Component(
        name=pool.name,
        role=pool.role,
        replicas=pool.replicas,
        image=image,
        command=() if own_command else ("python3", "-m", f"dynamo.{engine}"),
        args=tuple(ARGUMENTS[engine](spec, worker)),
        env=tuple(spec.env),
        memory=_text(pool.memory),
        cpu=_text(pool.cpu),
        cpu_limit=_text(pool.cpu_limit),
        gpu=pool.gpu if pool.gpu.count else None,
    )


def _text(quantity: Quantity | None) -> str | None:
    return None if quantity is None else str(quantity)
