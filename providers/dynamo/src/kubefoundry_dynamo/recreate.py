"""Changes that a DynamoGraphDeployment cannot take in place (sources §2.3).

Components cannot be added, removed or renamed (0.9), nor can `backendFramework` change (0.8). Older operators accept
such a change, but do not document what happens to the pods, so they are treated alike.
"""

from __future__ import annotations

from kubefoundry_sdk import Object, Rendered
from kubefoundry_sdk.status import mapping, mappings, text


def recreate(old: Rendered, new: Rendered) -> str | None:
    """Return why Dynamo cannot change the old graph into the new one, or None if it can."""
    before, after = _components(old.main), _components(new.main)
    if before != after:
        return f"Dynamo cannot add or remove components: {', '.join(sorted(before ^ after))}"
    old_backend, new_backend = (
        mapping(graph.get("spec")).get("backendFramework") for graph in (old.main, new.main)
    )
    if old_backend != new_backend:
        return "Dynamo does not change backendFramework"
    return None


def _components(graph: Object) -> set[str]:
    """Return the names, in either version of the CRD. The record of the last apply may lack any part."""
    spec = mapping(graph.get("spec"))
    return {
        *mapping(spec.get("services")),
        *(text(item.get("name")) for item in mappings(spec.get("components"))),
    }
