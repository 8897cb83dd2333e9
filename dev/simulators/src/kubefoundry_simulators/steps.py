"""The writes of a simulated operator as data. Each step follows the previous step after the recorded seconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Object = dict[str, Any]

NOW: Final = "<now>"
"""A placeholder at the top level of a reported status. It is replaced by the time of the write."""

FAIL_ANNOTATION: Final = "simulator.kubefoundry.ai/fail"
RUNS_ANNOTATION: Final = "simulator.kubefoundry.ai/runs"
FAIL_LABEL: Final = "kubefoundry.ai/simulator-fail"
"""The label with the effect of FAIL_ANNOTATION. Providers copy labels with this prefix from a ModelDeployment
(contract §7)."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Update the object itself by a plain PUT. The operator's field manager then owns the changed fields."""

    after: float
    change: Callable[[Object], Object]


@dataclass(frozen=True, slots=True)
class Report:
    """Replace the status. Conditions get their transition time with the write."""

    after: float
    status: Object


@dataclass(frozen=True, slots=True)
class Create:
    """Create a Service that the object owns."""

    after: float
    service: Object


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the Service with this name."""

    after: float
    service: str


@dataclass(frozen=True, slots=True)
class Run:
    """Record the workload of the running pods in an annotation, where a test can compare it with the spec.

    Attributes:
        after: Recorded seconds after the previous step.
        workload: The part of the spec that the pods run.
        config_map: Name of a ConfigMap that the pods read at start. Its data are recorded, too.
    """

    after: float
    workload: Object
    config_map: str | None = None


Step = Rewrite | Report | Create | Delete | Run


@dataclass(frozen=True, slots=True)
class Operator:
    """The visible behaviour of an upstream operator.

    Attributes:
        name: Name on the command line.
        crd: Name of its CRD.
        manager: Its field manager.
        adopt: Returns the first steps for an object (finalizer, annotations, spec rewrite), or none if they are done.
        plan: Returns the steps for a new object, an edited spec or another requested failure. The second argument is
            the object at the previous plan, or None.
        leave: Returns the steps for an object with a deletionTimestamp.
    """

    name: str
    crd: str
    manager: str
    adopt: Callable[[Object], list[Step]]
    plan: Callable[[Object, Object | None], list[Step]]
    leave: Callable[[Object], list[Step]]


def runs(object_: Mapping[str, Any]) -> Object:
    """Return the workload of the last `Run`, or an empty object."""
    annotation = (object_["metadata"].get("annotations") or {}).get(RUNS_ANNOTATION)
    workload: Object = json.loads(annotation) if annotation else {}
    return workload


def spec(object_: Mapping[str, Any]) -> Object:
    """Return the object's spec. It may be missing, because the API server accepts that in every custom resource."""
    content: Object = object_.get("spec") or {}
    return content


def failure(object_: Mapping[str, Any]) -> str | None:
    """Return the failure that the object's annotation or label requests."""
    meta = object_["metadata"]
    annotation = (meta.get("annotations") or {}).get(FAIL_ANNOTATION)
    return annotation or (meta.get("labels") or {}).get(FAIL_LABEL) or None


def condition(type_: str, status: str, reason: str, message: str, generation: int | None) -> Object:
    """Return a condition without its transition time. `generation` None leaves observedGeneration out."""
    content = {"type": type_, "status": status, "reason": reason, "message": message}
    return content if generation is None else {**content, "observedGeneration": generation}


def find_condition(object_: Mapping[str, Any], type_: str) -> Object | None:
    """Return the condition with this type in the object's status, or None."""
    conditions = (object_.get("status") or {}).get("conditions") or []
    return next((item for item in conditions if item["type"] == type_), None)


def with_finalizer(object_: Object, finalizer: str) -> Object:
    """Return the object with the finalizer."""
    meta = object_["metadata"]
    finalizers = meta.get("finalizers") or []
    if finalizer in finalizers:
        return object_
    return {**object_, "metadata": {**meta, "finalizers": [*finalizers, finalizer]}}


def without_finalizer(object_: Object, finalizer: str) -> Object:
    """Return the object without the finalizer."""
    meta = object_["metadata"]
    others = [item for item in meta.get("finalizers") or [] if item != finalizer]
    return {**object_, "metadata": {**meta, "finalizers": others}}


def annotated(object_: Object, annotations: Mapping[str, str]) -> Object:
    """Return the object with the annotations added."""
    meta = object_["metadata"]
    return {
        **object_,
        "metadata": {**meta, "annotations": {**(meta.get("annotations") or {}), **annotations}},
    }


def service(
    owner: Mapping[str, Any],
    name: str,
    ports: Mapping[str, tuple[int, int]],
    selector: Mapping[str, str],
    *,
    headless: bool = False,
) -> Object:
    """Return a Service that `owner` controls. `ports` has (port, target port) by name."""
    meta = owner["metadata"]
    spec: Object = {
        "selector": dict(selector),
        "ports": [
            {"name": port_name, "port": port, "targetPort": target}
            for port_name, (port, target) in ports.items()
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": meta["namespace"],
            "ownerReferences": [
                {
                    "apiVersion": owner["apiVersion"],
                    "kind": owner["kind"],
                    "name": meta["name"],
                    "uid": meta["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {**spec, "clusterIP": "None"} if headless else spec,
    }
