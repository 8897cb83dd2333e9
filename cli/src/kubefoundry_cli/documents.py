"""Define the types of the documents that commands print for programs. docs/cli-output.schema.json describes them.

Commands without such a type print objects as the API server stores them: `status` a List of ModelDeployments,
`status NAME` one ModelDeployment, `provider list` a List of InferenceProviderConfigs, `controller status` a List of
Deployments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NotRequired

# Before Python 3.12, typing.TypedDict does not show pydantic which keys are required.
from typing_extensions import TypedDict

from kubefoundry_cli.checks.finding import Finding
from kubefoundry_cli.selection import Stored
from kubefoundry_cli.upgrade import Outcome
from kubefoundry_cli.what_if import Verdict
from kubefoundry_selector.explain import ProviderVerdict
from kubefoundry_selector.select import Decision


class ExplainDocument(TypedDict):
    """The selection for a ModelDeployment.

    Attributes:
        deletion: The deletion and the finalizers that hold the model; null if it is not being deleted.
        named: The provider in spec.provider.name.
        selected: The selection that the cluster has stored for this spec, or would store for an edit.
        pending: Why the cluster selects no provider for the spec, or what it waits for.
        refusals: Why the chosen provider refuses the model; empty if it accepts.
        decision: The present result of the rules.
        providers: Each rule with the values that it read.
        verdicts: The verdict on each other provider, with the change that would select it.
    """

    namespace: str
    name: str
    deletion: str | None
    named: str | None
    selected: Stored | None
    pending: str | None
    refusals: list[str]
    decision: Decision
    providers: list[ProviderVerdict]
    verdicts: list[Verdict]


class PlannedChange(TypedDict):
    """A changed value upstream.

    Attributes:
        path: The path of the value.
        old: The live value; missing if the value is added.
        new: The new value; missing if the value is removed.
        fields: The spec fields that the value comes from.
        changedBy: The writer that has changed the live value since it was applied; missing if nobody has. The apply
            overwrites that change.
    """

    path: str
    old: NotRequired[Any]
    new: NotRequired[Any]
    fields: list[str]
    changedBy: NotRequired[str]


PlannedHandOver = TypedDict("PlannedHandOver", {"from": str, "deleted": str, "created": str})
"""`from` is the provider that serves. `created` are the objects of the new provider.

`deleted` are the objects of `from`. They are deleted once the new provider can take over.
"""


class PlanDocument(TypedDict):
    """The effect of an edit on the upstream object.

    Attributes:
        recreate: Why the object has to be recreated, null if it is changed in place.
        handOver: The change of the provider, null if the provider stays.
        suspended: Why nothing changes now (a pause, a dry run), null if the edit has an effect now.
        dryRun: The API server's answer, null without --server.
        changes: The changed values.
        unchanged: Number of values that stay.
    """

    kind: str
    apiVersion: str
    namespace: str
    name: str
    recreate: str | None
    handOver: PlannedHandOver | None
    suspended: str | None
    dryRun: str | None
    changes: list[PlannedChange]
    unchanged: int


class CompatDocument(TypedDict):
    """The effect of an upstream release on models.

    Attributes:
        apiVersion: The version in which objects are written with that CRD, null if the CRD is not supported.
        missing: Required fields that the CRD lacks.
        lost: Features that a ModelDeployment cannot use with the CRD.
        models: The effect on each model.
    """

    provider: str
    apiVersion: str | None
    missing: list[str]
    lost: list[str]
    models: list[Outcome]


class VersionDocument(TypedDict):
    """The versions of the components.

    Attributes:
        kubefoundry: This command line.
        commit: The commit that this command line was built from, with `-dirty` if its sources differ; missing if that
            is unknown.
        kubernetes: The API server; missing with --client.
        providers: The reported version of each registered provider; missing without the permission to read them.
    """

    kubefoundry: str
    commit: NotRequired[str]
    kubernetes: NotRequired[str]
    providers: NotRequired[dict[str, str]]


DOCUMENTS: Final[Mapping[str, Any]] = {
    "explain": ExplainDocument | list[ExplainDocument],
    "plan": PlanDocument | list[PlanDocument],
    "compat": CompatDocument,
    "doctor": list[Finding],
    "version": VersionDocument,
}
"""The type of the document by command. `explain` and `plan` print a list for a file with several models."""


def schemas() -> dict[str, Any]:
    """Return a JSON schema with a definition for each command."""
    from pydantic import TypeAdapter

    by_command, common = TypeAdapter.json_schemas(
        [(name, "serialization", TypeAdapter(document)) for name, document in DOCUMENTS.items()]
    )
    for shape in common["$defs"].values():
        if "properties" in shape:
            shape["additionalProperties"] = False
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What kubefoundry COMMAND -o json prints",
        "properties": {name: by_command[name, "serialization"] for name in DOCUMENTS},
        "$defs": common["$defs"],
    }
