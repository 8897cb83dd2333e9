"""Differences between a prediction of the command line and the result in the cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from kubefoundry_cli.provenance import text
from kubefoundry_cli.providers import installed
from kubefoundry_cli.upstream import flattened
from kubefoundry_sdk._api import conditions, names, reasons
from kubefoundry_sdk._api.kinds import Object
from support.command_line import Done
from support.predictions.world import PROVIDER_OF, Upstream, is_accepted

MISSING: Final = "(missing)"


@dataclass(frozen=True, slots=True)
class Prediction:
    """The results of `plan` and `explain` of the same edit."""

    plan: Done
    explain: Done

    @property
    def document(self) -> Any:
        return json.loads(self.plan.out)

    def not_suspended(self) -> list[str]:
        """The difference if plan does not report a pause."""
        if self.plan.code == 0 and not self.document["suspended"]:
            return ["plan does not report the pause"]
        return []


def compared(
    prediction: Prediction, before: Mapping[str, Upstream], after: Mapping[str, Upstream], obj: Object
) -> list[str]:
    """The differences between the prediction of an edit and its result."""
    found = _explained(prediction.explain, obj)
    if prediction.plan.code == 0:
        return found + _planned(prediction.document, before, after, obj)
    if prediction.plan.code != 1:
        return [*found, f"plan exits {prediction.plan.code}: {prediction.plan.err}"]
    if is_accepted(obj):
        found.append(f"plan refuses what was accepted: {prediction.plan.err}")
    if before != after:
        found.append(f"plan refuses, but upstream changed: {prediction.plan.err}")
    return found


def _explained(explain: Done, obj: Object) -> list[str]:
    try:
        document = json.loads(explain.out)
    except ValueError:
        return [f"explain exits {explain.code}: {explain.err}"]
    status = obj.get("status") or {}
    is_selected = conditions.is_true(status.get("conditions"), reasons.PROVIDER_SELECTED)
    actual = (status.get("provider") or {}).get("name") if is_selected else None
    decision = None if document["pending"] else document["decision"]["provider"]
    stored = document["selected"]["provider"] if document["selected"] else decision
    predicted = document["named"] or stored
    if document["named"] and not is_selected and explain.code == 1:
        return []
    return [] if predicted == actual else [f"explain: {predicted}, the cluster: {actual}"]


def _planned(
    document: Any, before: Mapping[str, Upstream], after: Mapping[str, Upstream], obj: Object
) -> list[str]:
    kind, dry_run = document["kind"], document["dryRun"]
    if dry_run != "accepted" and document["changes"]:
        found = [f"plan --server: {dry_run}, but it was accepted"] if is_accepted(obj) else []
        return found + ([f"plan --server: {dry_run}, but upstream changed"] if before != after else [])
    if not is_accepted(obj):
        return [f"plan accepts {kind}, the cluster does not: {_messages(obj)}"]
    if set(after) != {kind}:
        return [f"plan: {kind}, the cluster: {', '.join(after) or 'nothing'}"]
    found = []
    others = set(before) - {kind}
    gone = PROVIDER_OF[others.pop()] if others else None
    predicted = (document["handOver"] or {}).get("from")
    if predicted != gone:
        found.append(f"plan: hand-over from {predicted}, the cluster: from {gone}")
    old = before.get(kind)
    is_recreated = old is not None and old.uid != after[kind].uid
    if bool(document["recreate"]) != is_recreated:
        found.append(f"plan: recreate {document['recreate']}, the cluster: {is_recreated}")
    return found + _changes(document, old.applied if old else {}, after[kind].applied)


def _changes(document: Any, old: Mapping[Any, Any], new: Mapping[Any, Any]) -> list[str]:
    predicted = {
        change["path"]: (change.get("old", MISSING), change.get("new", MISSING))
        for change in document["changes"]
        if change["path"].startswith(f"{document['kind']}.") and not _is_owner_uid(change["path"])
    }
    actual = {
        text(path): (old.get(path, MISSING), new.get(path, MISSING))
        for path in old.keys() | new.keys()
        if old.get(path, MISSING) != new.get(path, MISSING) and not _is_owner_uid(text(path))
    }
    return [
        f"{path}: plan {predicted.get(path)}, the cluster {actual.get(path)}"
        for path in sorted(predicted.keys() | actual.keys())
        if predicted.get(path) != actual.get(path)
    ]


def _is_owner_uid(path: str) -> bool:
    """Whether the value is the uid of the ModelDeployment, which a new one does not have yet."""
    return path.endswith(names.OWNER_UID_ANNOTATION) or ("ownerReferences" in path and path.endswith(".uid"))


def rendered(render: Done, after: Mapping[str, Upstream]) -> list[str]:
    """The differences between `render` of a new model and its upstream object."""
    if render.code:
        return [f"render: {render.err}, the cluster: {', '.join(after)}"] if after else []
    objects = list(yaml.safe_load_all(render.out))
    [kind] = [obj["kind"] for obj in objects if obj["kind"] in PROVIDER_OF] or [None]
    if set(after) != {kind}:
        return [f"render: {kind}, the cluster: {', '.join(after) or 'nothing'}"]
    [main] = [obj for obj in objects if obj["kind"] == kind]
    values = flattened(installed()[PROVIDER_OF[kind]], [main], flags=True)
    wrong = [
        text(path)
        for path, value in after[kind].applied.items()
        if path[1] != "metadata" and values.get(path, MISSING) != value
    ]
    return [f"render differs from the cluster at {', '.join(wrong)}"] if wrong else []


def _messages(obj: Object) -> str:
    found = (obj.get("status") or {}).get("conditions") or ()
    return "; ".join(f"{one['type']}: {one['message']}" for one in found if one["status"] != "True")
