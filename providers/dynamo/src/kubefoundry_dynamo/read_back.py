"""From a DynamoGraphDeployment to the spec of a ModelDeployment.

The reverse of `render`, for both versions of the CRD.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_dynamo.graph import FRONTEND, OWN_VOLUMES
from kubefoundry_dynamo.overrides import ROUTER_MODE_ENV
from kubefoundry_dynamo.v1alpha1 import NVIDIA_GPU
from kubefoundry_sdk import NotReadable, Object
from kubefoundry_sdk import read_back as common
from kubefoundry_sdk.status import part

ENGINES: Final = ("vllm", "sglang", "trtllm")

DERIVED: Final = {
    "disaggregation-mode",
    "disaggregation-strategy",
    "disaggregation-transfer-backend",
    "disaggregation-bootstrap-port",
    "is-prefill-worker",
    "is-decode-worker",
    "kv-transfer-config",
    "kv-events-config",
    "publish-kv-events",
    "publish-events-and-metrics",
}
"""Flags that follow from role and router mode."""

OF_ROLES: Final = ("cache_transceiver_config", "disable_overlap_scheduler")
"""Keys of TensorRT-LLM's configuration that follow from the role."""


@dataclass(frozen=True, slots=True)
class Part:
    """A component as either version of the CRD writes it: container, pod, pod metadata, and `amounts`."""

    replicas: int
    container: Mapping[str, Any]
    pod: Mapping[str, Any]
    metadata: Mapping[str, Any]
    resources: Object
    runtime: Any


def read_back(graph: Object, helpers: Sequence[Object]) -> list[Object]:
    """Return the spec, in a list of one. Raise NotReadable for a graph of another shape."""
    content = part(graph, "spec")
    services = content.get("services")
    named = (
        {name: _service(service) for name, service in part(services).items()}
        if services
        else {
            str(part(component).get("name")): _component(component)
            for component in content.get("components") or ()
        }
    )
    frontend = named.pop(FRONTEND, None)
    engine = str(content.get("backendFramework") or "")
    roles = {_role(name): component for name, component in named.items()}
    if frontend is None or engine not in ENGINES or set(roles) not in ({"worker"}, {"prefill", "decode"}):
        names = sorted({*named, *([FRONTEND] if frontend else [])})
        raise NotReadable(
            f"its components are {', '.join(names) or 'none'}; needed are "
            f"{FRONTEND} and one worker, or {FRONTEND}, a prefill and a decode worker, and backendFramework"
        )
    first = roles.get("worker") or roles["prefill"]
    spec = _model(engine, first)
    if "worker" in roles:
        spec |= {"scaling": {"replicas": first.replicas}, "resources": first.resources}
    else:
        sizes = {
            name: {"replicas": component.replicas, **component.resources} for name, component in roles.items()
        }
        spec |= {"serving": {"mode": "disaggregated"}, "scaling": sizes}
    spec |= common.pod_fields(first.container, first.pod, first.metadata, OWN_VOLUMES)
    return [{**spec, "provider": {"overrides": _overrides(frontend, first)}}]


def _role(name: str) -> str:
    return next((role for role in ("prefill", "decode") if role.capitalize() in name), "worker")


def _service(service: Any) -> Part:
    resources = part(service, "resources")
    limits = dict(part(resources, "limits"))
    count, kind = limits.pop("gpu", None), limits.pop("gpuType", NVIDIA_GPU)
    limits |= part(limits.pop("custom", None))
    if count is not None:
        limits[kind] = count
    container = {
        **part(service, "extraPodSpec", "mainContainer"),
        "env": part(service).get("envs"),
        "envFrom": [{"secretRef": {"name": part(service).get("envFromSecret")}}],
        "resources": {"claims": resources.get("claims")},
    }
    return Part(
        _count(part(service).get("replicas")),
        container,
        part(service, "extraPodSpec"),
        part(service, "extraPodMetadata"),
        common.amounts({"requests": resources.get("requests"), "limits": limits}),
        part(service).get("runtimeVersionOverride"),
    )


def _component(component: Any) -> Part:
    pod = part(component, "podTemplate", "spec")
    container: Mapping[str, Any] = next(
        (candidate for candidate in pod.get("containers") or () if part(candidate).get("name") == "main"), {}
    )
    return Part(
        _count(part(component).get("replicas")),
        container,
        pod,
        part(component, "podTemplate", "metadata"),
        common.amounts(container.get("resources")),
        part(component).get("runtimeVersionOverride"),
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 1


def _model(engine: str, worker: Part) -> Object:
    stated = {
        name: value
        for name, value in common.flags(worker.container.get("args") or ()).items()
        if name not in DERIVED
    }
    packed = stated.pop("override-engine-args", None) if engine == "trtllm" else None
    spec = common.from_flags(engine, stated)
    if extra := common.extra(worker.container.get("args") or ()):
        spec["engine"]["extraArgs"] = extra
    if packed:
        try:
            configuration = dict(part(json.loads(packed)))
        except ValueError as error:
            raise NotReadable("its --override-engine-args is not JSON") from error
        if configuration.pop("trust_remote_code", False) is True:
            spec["engine"]["trustRemoteCode"] = True
        args = {name: common.text(value) for name, value in configuration.items() if name not in OF_ROLES}
        if args:
            spec["engine"]["args"] = {**spec["engine"].get("args", {}), **args}
    return spec


def _overrides(frontend: Part, worker: Part) -> Object:
    """Return `provider.overrides`. The caller removes values that equal Dynamo's defaults."""
    events = {"kv-events-config", "publish-kv-events", "publish-events-and-metrics"}
    mode = next(
        (
            variable.get("value")
            for variable in frontend.container.get("env") or ()
            if variable.get("name") == ROUTER_MODE_ENV
        ),
        None,
    )
    if mode is None:
        mode = "kv" if events & set(common.flags(worker.container.get("args") or ())) else "none"
    requests = {name: value for name, value in frontend.resources.items() if name in ("cpu", "memory")}
    overrides: Object = {"frontend": {"replicas": frontend.replicas, "resources": requests}}
    if mode in ("kv", "round-robin", "none"):
        overrides["routerMode"] = mode
    if worker.runtime:
        overrides["runtimeVersion"] = str(worker.runtime)
    return overrides
