"""What a simulated operator does, as data: single writes, each some recorded seconds after the previous one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Object = dict[str, Any]

NOW: Final = "<now>"
"""Replaced by the time of the write, at the top level of a reported status."""

FAIL_ANNOTATION: Final = "simulator.kubefoundry.ai/fail"
RUNS_ANNOTATION: Final = "simulator.kubefoundry.ai/runs"
FAIL_LABEL: Final = "kubefoundry.ai/simulator-fail"
"""The label with the same effect: providers copy labels with that prefix from a ModelDeployment (contract §7)."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Updates the object itself by a plain PUT: what changes is then owned by the operator's field manager."""

    after: float
    change: Callable[[Object], Object]


@dataclass(frozen=True, slots=True)
class Report:
    """Replaces the status. Conditions get their transition time when it is written."""

    after: float
    status: Object


@dataclass(frozen=True, slots=True)
class Create:
    """Creates a Service that the object owns."""

    after: float
    service: Object


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes the Service of that name."""

    after: float
    service: str


@dataclass(frozen=True, slots=True)
class Run:
    """From now on these pods run: recorded in an annotation, where a test can see what runs behind the spec.

    config_map: a ConfigMap that they read at start; its data are added.
    """

    after: float
    workload: Object
    config_map: str | None = None


Step = Rewrite | Report | Create | Delete | Run


@dataclass(frozen=True, slots=True)
class Operator:
    """An upstream operator as seen from outside.

    adopt: what it does to every object first (finalizer, annotations, spec rewrite); nothing if it is done.
    plan: what it does when an object is new or its spec, or the requested failure, has changed. The second argument
        is the object at the previous plan, None for the first.
    leave: what it does once the object has a deletionTimestamp.
    """

    name: str
    crd: str
    manager: str
    adopt: Callable[[Object], list[Step]]
    plan: Callable[[Object, Object | None], list[Step]]
    leave: Callable[[Object], list[Step]]


def runs(object_: Mapping[str, Any]) -> Object:
    """The workload of the last `Run`, empty if there was none."""
    annotation = (object_["metadata"].get("annotations") or {}).get(RUNS_ANNOTATION)
    found: Object = json.loads(annotation) if annotation else {}
    return found


def spec(object_: Mapping[str, Any]) -> Object:
    """The object's spec; empty where it has none, which the API server accepts of every custom resource."""
    found: Object = object_.get("spec") or {}
    return found


def failure(object_: Mapping[str, Any]) -> str | None:
    """The failure that the object requests, by annotation or label."""
    meta = object_["metadata"]
    asked = (meta.get("annotations") or {}).get(FAIL_ANNOTATION) or (meta.get("labels") or {}).get(FAIL_LABEL)
    return asked or None


def condition(type_: str, status: str, reason: str, message: str, generation: int | None) -> Object:
    """A condition without its transition time; `generation` None leaves observedGeneration out."""
    made = {"type": type_, "status": status, "reason": reason, "message": message}
    return made if generation is None else {**made, "observedGeneration": generation}


def find_condition(object_: Mapping[str, Any], type_: str) -> Object | None:
    """The condition of that type in the object's status."""
    conditions = (object_.get("status") or {}).get("conditions") or []
    return next((item for item in conditions if item["type"] == type_), None)


def with_finalizer(object_: Object, finalizer: str) -> Object:
    """The object with the finalizer."""
    meta = object_["metadata"]
    finalizers = meta.get("finalizers") or []
    if finalizer in finalizers:
        return object_
    return {**object_, "metadata": {**meta, "finalizers": [*finalizers, finalizer]}}


def without_finalizer(object_: Object, finalizer: str) -> Object:
    """The object without the finalizer."""
    meta = object_["metadata"]
    kept = [item for item in meta.get("finalizers") or [] if item != finalizer]
    return {**object_, "metadata": {**meta, "finalizers": kept}}


def annotated(object_: Object, annotations: Mapping[str, str]) -> Object:
    """The object with the annotations."""
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
    """A Service controlled by `owner`; ports by name, `(port, target port)`."""
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
