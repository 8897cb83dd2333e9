"""Fields of a ModelDeployment that `kubectl get md --field-selector` knows on newer API servers (KEP-4358)."""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object

ENTRIES: Final[list[Object]] = [{"jsonPath": ".spec.provider.name"}, {"jsonPath": ".status.phase"}]
SINCE: Final = (1, 31)
"""The first Kubernetes that has them without a feature gate. An API server before 1.30 does not know the CRD's field
`selectableFields`, and kubectl then refuses the whole CRD."""


def added(definition: Object) -> Object:
    """Return the CRD of ModelDeployment with selectable fields, and any other CRD unchanged."""
    if definition["metadata"]["name"] != MODEL_DEPLOYMENTS.crd:
        return definition
    versions = [{**version, "selectableFields": ENTRIES} for version in definition["spec"]["versions"]]
    return {**definition, "spec": {**definition["spec"], "versions": versions}}


def present(definition: Object) -> bool:
    """Check whether a CRD, as stored, has selectable fields."""
    return any(version.get("selectableFields") for version in definition["spec"]["versions"])
