"""The values of the chart kubefoundry-crds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from charts.values import Closed, Labels

CrdAnnotations = Annotated[
    dict[str, str],
    Field(json_schema_extra={"patternProperties": {r"^helm\.sh/resource-policy$": False}}),
]


class CrdValues(Closed):
    """The values of the chart kubefoundry-crds."""

    keep: bool = Field(
        True, description="Keep the CRDs, and with them all models, when the release is uninstalled."
    )
    llamaStack: bool = Field(False, description="Install the CRD of LlamaStackDistributions.")
    selectableFields: bool = Field(
        False, description="Add the fields of kubectl get --field-selector. Needs Kubernetes 1.31 or newer."
    )
    storageVersion: Literal["v1alpha1", "v1beta1"] = Field(
        "v1alpha1",
        description="The version of the API that new objects are stored in. After a change: "
        "kubefoundry controller migrate.",
    )
    labels: Labels = Field({}, description="Labels of the CRDs.")
    annotations: CrdAnnotations = Field(
        {}, description="Annotations of the CRDs. helm.sh/resource-policy is set by keep."
    )
