"""Read a DynamoGraphDeployment in either version: its components, and the hash of its workers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_simulators.steps import Object, runs, spec

LONGEST_NAME: Final = 63
"""Characters of a Service's name, at most. A worker with a longer name never starts."""


def workload_name(graph: Object, component: str) -> str:
    """Return the name of a component's workload. A worker's name ends in a hash."""
    name = f"{graph['metadata']['name']}-{component.lower()}"
    return name if component in frontends(graph) else f"{name}-{worker_hash(graph)}"


def is_too_long(graph: Object) -> bool:
    """Check whether a workload of the graph has too long a name."""
    return any(len(workload_name(graph, name)) > LONGEST_NAME for name in components(graph))


def is_list(graph: Object) -> bool:
    """Check whether the graph has a list of components (v1beta1), not a map of services (v1alpha1)."""
    return "components" in spec(graph)


def components(graph: Object) -> dict[str, dict[str, Any]]:
    """Return the components by name."""
    if is_list(graph):
        return {part["name"]: part for part in spec(graph)["components"]}
    return dict(spec(graph).get("services") or {})


def frontends(graph: Object) -> list[str]:
    """Return the names of the frontend components."""
    return [
        name
        for name, part in components(graph).items()
        if (part.get("type") or part.get("componentType")) == "frontend"
    ]


def frontend_parts(graph: Object) -> list[Object]:
    """Return the frontend components."""
    return [part for name, part in components(graph).items() if name in frontends(graph)]


def has_served(graph: Object) -> bool:
    """Check whether the status reports a ready replica."""
    status = graph.get("status") or {}
    counts_by_name = status.get("services") or status.get("components") or {}
    return any(counts.get("readyReplicas") for counts in counts_by_name.values())


def worker_hash(graph: Object) -> str:
    """Return the hash of the workers in the spec, without replicas."""
    return _hash(components(graph), frontends(graph))


def running_hash(graph: Object) -> str:
    """Return the hash of the running workers, without replicas."""
    running = {name: part for name, part in runs(graph).items() if isinstance(part, dict)}
    return _hash(running, frontends(graph))


def _hash(parts_by_name: Mapping[str, Any], excluded: list[str]) -> str:
    parts = [
        {key: value for key, value in part.items() if key != "replicas"}
        for name, part in parts_by_name.items()
        if name not in excluded
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]
