"""Claims of `spec.model.storage` that core creates: their content, and the changes of existing ones.

These are pure functions. `claims` sends the requests. A claim belongs to a volume of a ModelDeployment by an
annotation of core. A user who may write claims can forge it, and gains nothing: a ModelDeployment may mount any claim
of its namespace by `claimName`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_sdk._api import names, quantity, validation
from kubefoundry_sdk._api.formats import is_label_value
from kubefoundry_sdk._api.kinds import CLAIMS, Object
from kubefoundry_sdk._api.managed_claims import claim_name, templates
from kubefoundry_sdk._api.untrusted import mappings, part

PERMIT: Final = (
    "ask an administrator to apply manifests/claims (storageClaims.enabled in the chart), or create the claim "
    "yourself and name it in claimName"
)
"""The remedy if core may not create claims."""

GOING: Final = (
    "is being deleted, and goes with the last pod that mounts it. Set scaling.replicas to 0 until the Event "
    "ClaimCreated reports a new, empty one"
)
"""The note on a claim that somebody has deleted while pods may mount it."""

_SPECIAL: Final = str.maketrans({"~": "~0", "/": "~1"})


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that core creates.

    Attributes:
        volume: The volume of `model.storage`.
        name: The name of the claim.
        owner: The ModelDeployment's `metadata`.
        template: `claimTemplate` of the volume, with its defaults.
    """

    volume: str
    name: str
    owner: Mapping[str, Any]
    template: Mapping[str, Any]

    @property
    def mark(self) -> str:
        """The annotation by which core recognizes the claim."""
        return f"{self.owner['name']}/{self.volume}"

    @property
    def is_deleted_with_model(self) -> bool:
        """Whether the claim is deleted with the ModelDeployment."""
        return bool(self.template["whenDeleted"] == "Delete")

    @property
    def described(self) -> str:
        """Size, access mode and class, for messages."""
        storage_class = self.template.get("storageClassName")
        of_class = f"StorageClass {storage_class}" if storage_class else "the default StorageClass"
        return f"{self.template['size']}, {self.template['accessMode']}, {of_class}"


@dataclass(frozen=True, slots=True)
class Change:
    """A JSON patch of an existing claim, and the Event about it.

    Attributes:
        operations: The operations, without the tests of uid and resourceVersion.
        reason: The reason of the Event, empty for none.
        note: The note of the Event.
        failure: The beginning of the message if the API server refuses the patch.
    """

    operations: tuple[Mapping[str, Any], ...]
    reason: str
    note: str
    failure: str


def claims_of(live: Object) -> list[Claim]:
    """Return the claims of a ModelDeployment with a valid spec that core creates."""
    if not any(templates(live.get("spec"))):
        return []
    meta = live["metadata"]
    return [
        Claim(volume, claim_name(meta["name"], volume), meta, template)
        for volume, template in templates(validation.default(live["spec"]))
    ]


def body(claim: Claim) -> Object:
    """Return the claim to create."""
    model, template = str(claim.owner["name"]), claim.template
    metadata: Object = {
        "name": claim.name,
        "namespace": claim.owner["namespace"],
        "annotations": {
            names.CLAIM_OF_ANNOTATION: claim.mark,
            names.CLAIM_OF_UID_ANNOTATION: claim.owner["uid"],
        },
    }
    if is_label_value(model):
        metadata["labels"] = {names.MODEL_LABEL: model}
    if claim.is_deleted_with_model:
        metadata["ownerReferences"] = [_owner_reference(claim)]
    spec: Object = {
        "accessModes": [template["accessMode"]],
        "resources": {"requests": {"storage": template["size"]}},
    }
    if storage_class := template.get("storageClassName"):
        spec["storageClassName"] = storage_class
    return {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind, "metadata": metadata, "spec": spec}


def is_going(claim: Claim, live: Object) -> bool:
    """Check whether the existing claim is the volume's own, and is being deleted while its pods may mount it."""
    annotations = live["metadata"].get("annotations") or {}
    return (
        bool(live["metadata"].get("deletionTimestamp"))
        and annotations.get(names.CLAIM_OF_ANNOTATION) == claim.mark
        and annotations.get(names.CLAIM_OF_UID_ANNOTATION) == claim.owner["uid"]
    )


def problem(claim: Claim, live: Object) -> str:
    """Return why the volume cannot use the existing claim, and a remedy; empty if it can.

    A claim for which `is_going` holds is to be left out.
    """
    meta = live["metadata"]
    if (meta.get("annotations") or {}).get(names.CLAIM_OF_ANNOTATION) != claim.mark:
        return (
            "exists and was not created for this volume: set claimName instead of claimTemplate to use it, or rename "
            "the volume"
        )
    if meta.get("deletionTimestamp"):
        return "is being deleted. It is created again as soon as no pod mounts it and it is gone"
    others = [owner for owner in _models(live) if owner.get("uid") != claim.owner["uid"]]
    if strangers := [str(owner.get("name")) for owner in others if owner.get("name") != claim.owner["name"]]:
        return (
            f"is deleted with ModelDeployment {strangers[0]}, which also owns it: remove that owner from its "
            "metadata.ownerReferences, or rename the volume for a new claim"
        )
    if others:
        return "is deleted with an earlier ModelDeployment of this name. It is created again as soon as it is gone"
    spec, template = live.get("spec") or {}, claim.template
    if template["accessMode"] not in (modes := spec.get("accessModes") or []):
        return _immutable("accessMode", ", ".join(map(str, modes)))
    stated, actual = template.get("storageClassName"), spec.get("storageClassName")
    return _immutable("storageClassName", str(actual or "")) if stated and stated != actual else ""


def changes(claim: Claim, live: Object) -> list[Change]:
    """Return the changes of a claim that the volume can use (`problem`). Each is a request of its own.

    A claim that is larger than the template stays as it is, because a user may have enlarged it.
    """
    found = []
    meta, uid = live["metadata"], claim.owner["uid"]
    if meta["annotations"].get(names.CLAIM_OF_UID_ANNOTATION) != uid:
        path = "/metadata/annotations/" + names.CLAIM_OF_UID_ANNOTATION.translate(_SPECIAL)
        note = f"PersistentVolumeClaim {claim.name} of an earlier ModelDeployment of this name is used again"
        operation = {"op": "add", "path": path, "value": uid}
        found.append(Change((operation,), "ClaimReused", note, "cannot be used again"))
    if claim.is_deleted_with_model != bool(_models(live)):
        others = [owner for owner in meta.get("ownerReferences") or () if owner not in _models(live)]
        owners = [*others, _owner_reference(claim)] if claim.is_deleted_with_model else others
        operation = {"op": "add", "path": "/metadata/ownerReferences", "value": owners}
        # The plugin OwnerReferencesPermissionEnforcement allows this only to those who may delete the claim.
        before = "Retain" if claim.is_deleted_with_model else "Delete"
        failure = f"cannot follow the change of whenDeleted, so set whenDeleted to {before} again"
        found.append(Change((operation,), "", "", failure))
    size = part(live, "spec", "resources", "requests").get("storage")
    if _is_larger(claim.template["size"], size):
        path = "/spec/resources/requests/storage"
        operation = {"op": "replace", "path": path, "value": claim.template["size"]}
        to = f"from {size} to {claim.template['size']}"
        note = f"PersistentVolumeClaim {claim.name} is enlarged {to}"
        failure = f"cannot be enlarged {to}, so set size to {size}, or rename the volume for a new claim"
        found.append(Change((operation,), "ClaimEnlarged", note, failure))
    return found


def _immutable(field: str, actual: str) -> str:
    has, remedy = (
        (f"{field} {actual}", f"set {field} to that") if actual else (f"no {field}", f"remove {field}")
    )
    return (
        f"has {has}, which cannot change: {remedy}, rename the volume for a new claim, or "
        "delete the claim with its files, and set scaling.replicas to 0 until it is created again"
    )


def _is_larger(size: object, actual: object) -> bool:
    try:
        return quantity.stored(size) > quantity.stored(actual)
    except ValueError:
        return False


def _models(live: Object) -> list[Mapping[str, Any]]:
    """Return the owner references to ModelDeployments."""
    return [
        owner
        for owner in mappings(live["metadata"].get("ownerReferences"))
        if owner.get("kind") == names.MODEL_DEPLOYMENT and owner.get("apiVersion") in names.API_VERSIONS
    ]


def _owner_reference(claim: Claim) -> Object:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.MODEL_DEPLOYMENT,
        "name": claim.owner["name"],
        "uid": claim.owner["uid"],
    }
