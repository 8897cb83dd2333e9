"""The Widget of a ModelDeployment as it is written, and whose a Widget is (contract §4, contract §7). Pure."""

from __future__ import annotations

import json
from typing import Final

import widget
from api_server import Object

PREFIX: Final = "kubefoundry.ai/"
APPLIED: Final = f"{PREFIX}applied"


def dressed(deployment: Object, live: Object | None, provider: str) -> Object:
    """Name, owner, labels, record and content."""
    meta, spec = deployment["metadata"], deployment["spec"]
    annotations = meta.get("annotations") or {}
    content, record = widget.rendered(spec), recorded(live)
    refresh = annotations.get(f"{PREFIX}refresh", "")
    if live and record and record["refresh"] == refresh and not identity_changed(deployment, live):
        content = widget.merged(
            content, widget.rendered(record["spec"]), record["widget"], live.get("spec") or {}
        )
    applied = json.dumps({"spec": spec, "widget": content, "refresh": refresh}, sort_keys=True)
    ours = {name: value for name, value in (meta.get("labels") or {}).items() if name.startswith(PREFIX)}
    owner = {"apiVersion": deployment["apiVersion"], "kind": "ModelDeployment", "name": meta["name"]}
    return {
        "apiVersion": widget.API_VERSION,
        "kind": "Widget",
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": {**ours, f"{PREFIX}managed-by": "kubefoundry", f"{PREFIX}provider": provider},
            "annotations": {
                f"{PREFIX}owner-uid": meta["uid"],
                APPLIED: applied,
                f"{APPLIED}-generation": str(meta["generation"]),
            },
            "ownerReferences": [
                {**owner, "uid": meta["uid"], "controller": True, "blockOwnerDeletion": True}
            ],
        },
        "spec": content,
    }


def recorded(live: Object | None) -> Object | None:
    """What was written last: the ModelDeployment's spec, the Widget's, the value of `refresh`; None where that cannot
    be read, because users can write annotations, too."""
    try:
        record = json.loads(((live or {})["metadata"].get("annotations") or {})[APPLIED])
        widget.rendered(record["spec"])
        return record if isinstance(record["refresh"], str) and isinstance(record["widget"], dict) else None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def applied_generation(live: Object) -> int:
    """0 where it is not known."""
    recorded = str((live["metadata"].get("annotations") or {}).get(f"{APPLIED}-generation", ""))
    return int(recorded) if recorded.isdecimal() and len(recorded) < 16 else 0


def reported_since_applied(live: Object, manager: str) -> bool:
    """Whether the status may be about the last apply, by the times in managedFields; True of a new object."""
    entries = live["metadata"].get("managedFields") or ()
    applied = [item.get("time", "") for item in entries if item.get("manager") == manager]
    written = [item.get("time", "") for item in entries if item.get("subresource") == "status"]
    new = live["metadata"].get("generation", 1) <= 1
    return new or not applied or max(written, default="") >= max(applied)


def identity_changed(deployment: Object, live: Object) -> list[str]:
    """Fields whose change makes another model of it: a new object, in place of the old one."""
    record = recorded(live)
    after: Object = deployment["spec"]
    before: Object = record["spec"] if record else after
    return [path for path in widget.IDENTITY if widget.at(before, path) != widget.at(after, path)]


def differences(wanted: Object, live: Object) -> list[str]:
    """Paths at which the live Widget does not have what is wanted."""
    found = [
        f"spec.{name}" for name, value in wanted["spec"].items() if live.get("spec", {}).get(name) != value
    ]
    for part in ("labels", "annotations"):
        have = live["metadata"].get(part) or {}
        found += [
            f"metadata.{part}.{name}"
            for name, value in wanted["metadata"][part].items()
            if have.get(name) != value
        ]
    if wanted["metadata"]["ownerReferences"][0] not in (live["metadata"].get("ownerReferences") or ()):
        found.append("metadata.ownerReferences")
    return found


def owner(live: Object) -> Object | None:
    references = live["metadata"].get("ownerReferences") or ()
    return next((one for one in references if one.get("kind") == "ModelDeployment"), None)


def owned_by(live: Object, uid: str) -> bool:
    """Whether one of its owners has that uid: anybody may put another owner in front."""
    references = live["metadata"].get("ownerReferences") or ()
    return any(one.get("kind") == "ModelDeployment" and one.get("uid") == uid for one in references)


def made_for(live: Object, uid: str) -> bool:
    """Whether it was made for that ModelDeployment: by owner or annotation, because either may have been removed."""
    marked = (live["metadata"].get("annotations") or {}).get(f"{PREFIX}owner-uid") == uid
    return marked or owned_by(live, uid)


def written_by(live: Object, manager: str) -> bool:
    return any(entry.get("manager") == manager for entry in live["metadata"].get("managedFields") or ())
