"""Reads a DynamoGraphDeployment in either version: its components, and the hash of its workers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_simulators.steps import Object, runs, spec

LONGEST_NAME: Final = 63
"""Characters of a Service's name: with a longer one the worker never starts."""


def workload_name(graph: Object, component: str) -> str:
    """A worker's has a hash behind it."""
    name = f"{graph['metadata']['name']}-{component.lower()}"
    return name if component in frontends(graph) else f"{name}-{worker_hash(graph)}"


def is_too_long(graph: Object) -> bool:
    return any(len(workload_name(graph, name)) > LONGEST_NAME for name in components(graph))


def is_list(graph: Object) -> bool:
    """v1beta1 has a list of components, v1alpha1 a map of services."""
    return "components" in spec(graph)


def components(graph: Object) -> dict[str, dict[str, Any]]:
    if is_list(graph):
        return {part["name"]: part for part in spec(graph)["components"]}
    return dict(spec(graph).get("services") or {})


def frontends(graph: Object) -> list[str]:
    return [
        name
        for name, part in components(graph).items()
        if (part.get("type") or part.get("componentType")) == "frontend"
    ]


def frontend_parts(graph: Object) -> list[Object]:
    return [part for name, part in components(graph).items() if name in frontends(graph)]


def has_served(graph: Object) -> bool:
    status = graph.get("status") or {}
    counted = (status.get("services") or status.get("components") or {}).values()
    return any(counts.get("readyReplicas") for counts in counted)


def worker_hash(graph: Object) -> str:
    return _hash(components(graph), frontends(graph))


def running_hash(graph: Object) -> str:
    running = {name: part for name, part in runs(graph).items() if isinstance(part, dict)}
    return _hash(running, frontends(graph))


def _hash(parts_by_name: Mapping[str, Any], left_out: list[str]) -> str:
    parts = [
        {key: value for key, value in part.items() if key != "replicas"}
        for name, part in parts_by_name.items()
        if name not in left_out
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]
