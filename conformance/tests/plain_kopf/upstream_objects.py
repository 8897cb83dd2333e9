"""Content and ownership of Widgets (contract §4, contract §7). All functions are pure."""

from __future__ import annotations

import json
from typing import Final

import widget
from api_server import Object

PREFIX: Final = "kubefoundry.ai/"
APPLIED: Final = f"{PREFIX}applied"


def dressed(deployment: Object, live: Object | None, provider: str) -> Object:
    """Return the Widget of a ModelDeployment with owner, labels and record."""
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
    """Return the record of the last write: the ModelDeployment's spec, the Widget's, and the value of `refresh`.

    Users can write annotations, too, so an invalid record is None.
    """
    try:
        record = json.loads(((live or {})["metadata"].get("annotations") or {})[APPLIED])
        widget.rendered(record["spec"])
        return record if isinstance(record["refresh"], str) and isinstance(record["widget"], dict) else None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def applied_generation(live: Object) -> int:
    """Return the generation of the last write, 0 if it is unknown."""
    generation = str((live["metadata"].get("annotations") or {}).get(f"{APPLIED}-generation", ""))
    return int(generation) if generation.isdecimal() and len(generation) < 16 else 0


def reported_since_applied(live: Object, manager: str) -> bool:
    """Check whether the status may be newer than the last apply, by managedFields; True for a new object."""
    entries = live["metadata"].get("managedFields") or ()
    applied = [item.get("time", "") for item in entries if item.get("manager") == manager]
    written = [item.get("time", "") for item in entries if item.get("subresource") == "status"]
    new = live["metadata"].get("generation", 1) <= 1
    return new or not applied or max(written, default="") >= max(applied)


def identity_changed(deployment: Object, live: Object) -> list[str]:
    """Return changed fields that identify the model. Their change requires a new Widget."""
    record = recorded(live)
    after: Object = deployment["spec"]
    before: Object = record["spec"] if record else after
    return [path for path in widget.IDENTITY if widget.at(before, path) != widget.at(after, path)]


def differences(manifest: Object, live: Object) -> list[str]:
    """Return the paths at which the live Widget differs from the manifest."""
    paths = [
        f"spec.{name}" for name, value in manifest["spec"].items() if live.get("spec", {}).get(name) != value
    ]
    for part in ("labels", "annotations"):
        have = live["metadata"].get(part) or {}
        paths += [
            f"metadata.{part}.{name}"
            for name, value in manifest["metadata"][part].items()
            if have.get(name) != value
        ]
    if manifest["metadata"]["ownerReferences"][0] not in (live["metadata"].get("ownerReferences") or ()):
        paths.append("metadata.ownerReferences")
    return paths


def owner(live: Object) -> Object | None:
    references = live["metadata"].get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("kind") == "ModelDeployment"), None)


def owned_by(live: Object, uid: str) -> bool:
    """Check whether one of the owners has that uid. It need not be the first, because anybody may add an owner."""
    references = live["metadata"].get("ownerReferences") or ()
    return any(
        reference.get("kind") == "ModelDeployment" and reference.get("uid") == uid for reference in references
    )


def made_for(live: Object, uid: str) -> bool:
    """Check by owner or annotation whether a Widget belongs to that ModelDeployment. Either may have been removed."""
    marked = (live["metadata"].get("annotations") or {}).get(f"{PREFIX}owner-uid") == uid
    return marked or owned_by(live, uid)


def written_by(live: Object, manager: str) -> bool:
    return any(entry.get("manager") == manager for entry in live["metadata"].get("managedFields") or ())
