"""Convert DynamoGraphDeployments between v1alpha1 (a map of services) and v1beta1 (a list of components).

Fields that both shapes have are converted. Other fields survive a round trip, because an annotation keeps the
original spec, as in the real operator's conversion.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_simulators.steps import Object

GROUP: Final = "nvidia.com"
ORIGINAL: Final = "nvidia.com/dgd-spec"
NVIDIA_GPU: Final = "nvidia.com/gpu"
CONTAINER: Final = "main"
SHARED_FIELDS: Final = (
    "replicas",
    "multinode",
    "globalDynamoNamespace",
    "minAvailable",
    "modelRef",
    "runtimeVersionOverride",
    "scalingAdapter",
)
"""Fields of a service and a component with the same meaning."""


def converted(object_: Object, api_version: str) -> Object:
    """Return the object in another API version.

    The result always has metadata, as that of the real webhook, a Go program. Kubernetes 1.26 demands it even for the
    parts of an object that its API server converts when it prunes fields at an apply.

    Raises:
        ValueError: The version is unknown.
    """
    if object_["apiVersion"] == api_version:
        return object_
    version = api_version.removeprefix(f"{GROUP}/")
    if version not in ("v1alpha1", "v1beta1"):
        raise ValueError(f"cannot convert to {api_version}")
    to, back = (to_v1beta1, to_v1alpha1) if version == "v1beta1" else (to_v1alpha1, to_v1beta1)
    meta = object_.get("metadata") or {}
    result: Object = {**object_, "apiVersion": api_version, "metadata": meta}
    if "spec" in object_:
        annotations = dict(meta.get("annotations") or {})
        original = json.loads(annotations.pop(ORIGINAL, "null"))
        # The original is stale if the spec was edited after the conversion.
        if original is not None and back(original) == object_["spec"]:
            result["spec"] = original
        else:
            result["spec"] = to(object_["spec"])
            annotations[ORIGINAL] = json.dumps(object_["spec"], sort_keys=True)
        result["metadata"] = {**meta, "annotations": annotations}
    if "status" in object_:
        result["status"] = _status(object_["status"], version)
    return result


def to_v1beta1(spec: Mapping[str, Any]) -> Object:
    """Return the v1beta1 shape of a v1alpha1 spec."""
    beta = _renamed(spec, {"services": None, "envs": "env"})
    beta["components"] = [_component(name, service) for name, service in (spec.get("services") or {}).items()]
    return beta


def to_v1alpha1(spec: Mapping[str, Any]) -> Object:
    """Return the v1alpha1 shape of a v1beta1 spec."""
    alpha = _renamed(spec, {"components": None, "env": "envs"})
    alpha["services"] = {component["name"]: _service(component) for component in spec.get("components") or []}
    return alpha


def _component(name: str, service: Mapping[str, Any]) -> Object:
    pod = dict(service.get("extraPodSpec") or {})
    container = _main_container(service, pod.pop("mainContainer", {}))
    template: Object = {"spec": {**pod, "containers": [container, *(pod.get("containers") or [])]}}
    if service.get("extraPodMetadata"):
        template["metadata"] = service["extraPodMetadata"]
    component: Object = {"name": name, "podTemplate": template}
    role = service.get("subComponentType") or service.get("componentType")
    if role:
        component["type"] = role
    if (service.get("sharedMemory") or {}).get("size") is not None:
        component["sharedMemorySize"] = service["sharedMemory"]["size"]
    return component | {field: service[field] for field in SHARED_FIELDS if field in service}


def _main_container(service: Mapping[str, Any], extra: Mapping[str, Any]) -> Object:
    """Return the main container of a v1alpha1 service: `extra`, with the fields that the service has itself."""
    container: Object = {"name": CONTAINER, **extra}
    if env := [*(service.get("envs") or []), *(container.get("env") or [])]:
        container["env"] = env
    if service.get("envFromSecret"):
        secret = {"secretRef": {"name": service["envFromSecret"]}}
        container["envFrom"] = [secret, *(container.get("envFrom") or [])]
    if resources := _standard_resources(service.get("resources") or {}):
        container["resources"] = resources
    return container


def _service(component: Mapping[str, Any]) -> Object:
    template = component.get("podTemplate") or {}
    service = _roles(component.get("type")) | _pod_fields(template.get("spec") or {})
    if template.get("metadata"):
        service["extraPodMetadata"] = template["metadata"]
    if "sharedMemorySize" in component:
        service["sharedMemory"] = {"size": component["sharedMemorySize"]}
    return service | {field: component[field] for field in SHARED_FIELDS if field in component}


def _pod_fields(pod: Mapping[str, Any]) -> Object:
    """Return the fields of a v1alpha1 service for the pod of a v1beta1 component."""
    containers = pod.get("containers", [])
    main = next((dict(item) for item in containers if item["name"] == CONTAINER), {})
    main.pop("name", None)
    fields = _taken_from(main)
    others = [item for item in containers if item["name"] != CONTAINER]
    extra = {key: value for key, value in pod.items() if key != "containers"}
    extra |= {key: value for key, value in (("containers", others), ("mainContainer", main)) if value}
    return {**fields, "extraPodSpec": extra} if extra else fields


def _roles(role: str | None) -> Object:
    """Return the fields of a v1alpha1 service for the type of a v1beta1 component."""
    if role in ("prefill", "decode"):
        return {"componentType": "worker", "subComponentType": role}
    return {"componentType": role} if role else {}


def _taken_from(main: Object) -> Object:
    """Take the fields that a v1alpha1 service has itself from its main container, and return them."""
    fields: Object = {}
    if "env" in main:
        fields["envs"] = main.pop("env")
    sources = list(main.pop("envFrom", []))
    if sources and set(sources[0]) == {"secretRef"}:
        fields["envFromSecret"] = sources.pop(0)["secretRef"]["name"]
    if sources:
        main["envFrom"] = sources
    if "resources" in main:
        fields["resources"] = _dynamo_resources(main.pop("resources"))
    return fields


def _standard_resources(resources: Mapping[str, Any]) -> Object:
    """Convert `gpu`, `gpuType` and `custom` to plain resource names."""
    standard: Object = {}
    for kind, amounts in resources.items():
        if kind == "claims":
            standard[kind] = amounts
            continue
        plain = {name: value for name, value in amounts.items() if name not in ("gpu", "gpuType", "custom")}
        if "gpu" in amounts:
            plain[amounts.get("gpuType") or NVIDIA_GPU] = amounts["gpu"]
        standard[kind] = plain | (amounts.get("custom") or {})
    return standard


def _dynamo_resources(resources: Mapping[str, Any]) -> Object:
    """Convert plain resource names to `cpu`, `memory`, `gpu` and `custom`."""
    result: Object = {}
    for kind, amounts in resources.items():
        if kind == "claims":
            result[kind] = amounts
            continue
        named = {name: str(amounts[name]) for name in ("cpu", "memory") if name in amounts}
        if NVIDIA_GPU in amounts:
            named["gpu"] = str(amounts[NVIDIA_GPU])
        custom = {
            name: str(value) for name, value in amounts.items() if name not in ("cpu", "memory", NVIDIA_GPU)
        }
        result[kind] = {**named, **({"custom": custom} if custom else {})}
    return result


def _status(status: Mapping[str, Any], version: str) -> Object:
    """Convert the status. Only v1alpha1 has `componentName`, the first workload of a service."""
    result = dict(status)
    if version == "v1beta1" and "services" in result:
        result["components"] = {
            name: {key: value for key, value in counts.items() if key != "componentName"}
            for name, counts in result.pop("services").items()
        }
    elif version == "v1alpha1" and "components" in result:
        result["services"] = {
            name: {**counts, "componentName": (counts.get("componentNames") or [name])[0]}
            for name, counts in result.pop("components").items()
        }
    return result


def _renamed(spec: Mapping[str, Any], names: Mapping[str, str | None]) -> Object:
    """Return the spec with renamed fields. The new name None leaves a field out."""
    return {new: value for name, value in spec.items() if (new := names.get(name, name)) is not None}
