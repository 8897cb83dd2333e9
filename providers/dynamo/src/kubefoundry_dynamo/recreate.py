"""Changes that a DynamoGraphDeployment cannot take in place (sources §2.3).

Components cannot be added, removed or renamed (0.9), nor can `backendFramework` change (0.8). Older operators accept
such a change, but do not document what happens to the pods, so they are treated alike.
"""

from __future__ import annotations

from kubefoundry_sdk import Object, Rendered


def recreate(old: Rendered, new: Rendered) -> str | None:
    before, after = _components(old.main), _components(new.main)
    if before != after:
        return f"Dynamo adds and removes no components: {', '.join(sorted(before ^ after))}"
    if old.main["spec"]["backendFramework"] != new.main["spec"]["backendFramework"]:
        return "Dynamo does not change backendFramework"
    return None


def _components(graph: Object) -> set[str]:
    """Names, in either version of the CRD."""
    spec = graph["spec"]
    return set(spec.get("services") or [component["name"] for component in spec["components"]])
