"""The documents that commands print for programs, as types; docs/cli-output.schema.json is made of them.

`status` prints a List of ModelDeployments, with NAME one of them, `provider list` a List of InferenceProviderConfigs,
`controller status` a List of Deployments. Their items are as the API server stores them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NotRequired

# typing's own TypedDict hides from pydantic before Python 3.12 which keys are required
from typing_extensions import TypedDict

from kubefoundry_cli.checks.finding import Finding
from kubefoundry_cli.selection import Stored
from kubefoundry_cli.upgrade import Outcome
from kubefoundry_cli.what_if import Verdict
from kubefoundry_selector.explain import ProviderVerdict
from kubefoundry_selector.select import Decision


class ExplainDocument(TypedDict):
    """named: the provider in spec.provider.name. selected: the selection that the cluster has stored for this spec,
    or would store for an edit. pending: why the cluster selects none for it, or what it waits for. refusals: why
    the provider that would be used refuses the model, empty where it does not. decision: what the rules would select
    now. providers: each rule with the values that it read. verdicts: what would have to
    change for each other provider."""

    named: str | None
    selected: Stored | None
    pending: str | None
    refusals: list[str]
    decision: Decision
    providers: list[ProviderVerdict]
    verdicts: list[Verdict]


class PlannedChange(TypedDict):
    """old: the live value, missing where the value is added, new where it is removed. fields: of the spec that it
    comes from. changedBy: who has changed the live value since it was applied, so that it is put back; missing where
    nobody has."""

    path: str
    old: NotRequired[Any]
    new: NotRequired[Any]
    fields: list[str]
    changedBy: NotRequired[str]


PlannedHandOver = TypedDict("PlannedHandOver", {"from": str, "deleted": str, "created": str})
"""from: the provider that serves. deleted: its objects, once the other one can take over. created: the objects of the
other one."""


class PlanDocument(TypedDict):
    """recreate: why the object has to be recreated, null where it is changed in place. suspended: why nothing changes
    now (a pause, a dry run), null if it does. dryRun: the API server's answer, null without --server. unchanged: how
    many values stay."""

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
    """apiVersion: in which objects are written with that CRD, null where it is not supported. missing: fields without
    which nothing can be written. lost: what a ModelDeployment cannot use with it."""

    provider: str
    apiVersion: str | None
    missing: list[str]
    lost: list[str]
    models: list[Outcome]


class VersionDocument(TypedDict):
    """kubefoundry: this command line. kubernetes: the API server, missing with --client. providers: what each
    registered provider has reported, missing where that may not be read."""

    kubefoundry: str
    kubernetes: NotRequired[str]
    providers: NotRequired[dict[str, str]]


DOCUMENTS: Final[Mapping[str, Any]] = {
    "explain": ExplainDocument,
    "plan": PlanDocument,
    "compat": CompatDocument,
    "doctor": list[Finding],
    "version": VersionDocument,
}
"""By command."""


def schemas() -> dict[str, Any]:
    """A JSON schema with a definition for each command."""
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
