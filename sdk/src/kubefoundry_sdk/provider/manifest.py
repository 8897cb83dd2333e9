"""What the runtime adds to rendered objects, and what it can tell of live ones (contract §4: names, ownership)."""

from __future__ import annotations

import base64
import binascii
import copy
import json
import zlib
from collections.abc import Mapping
from typing import Any, Final, Literal

from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.contract import Deployment

PROVIDER_LABEL: Final = f"{names.PREFIX}provider"

Ownership = Literal["ours", "leaving", "foreign"]


def dress(rendered: Object, deployment: Deployment, provider: str) -> Object:
    """The object as it is applied: namespace, owner, labels, annotations, and the record of all that.

    Labels (003 §4.12): those of the ModelDeployment under `kubefoundry.ai/`, and which shim made it.
    """
    obj = copy.deepcopy(rendered)
    meta = obj["metadata"]
    meta["namespace"] = deployment.namespace
    meta["labels"] = {
        **meta.get("labels", {}),
        **{key: value for key, value in deployment.labels.items() if key.startswith(names.PREFIX)},
        names.MANAGED_BY_LABEL: names.MANAGED_BY,
        PROVIDER_LABEL: provider,
    }
    meta["annotations"] = {**meta.get("annotations", {}), names.OWNER_UID_ANNOTATION: deployment.uid}
    meta["ownerReferences"] = [
        {
            "apiVersion": names.API_VERSION,
            "kind": names.MODEL_DEPLOYMENT,
            "name": deployment.name,
            "uid": deployment.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    record = pack(obj)
    meta["annotations"][names.APPLIED_ANNOTATION] = record
    meta["annotations"][names.APPLIED_GENERATION_ANNOTATION] = str(deployment.generation)
    return obj


def pack(obj: Object) -> str:
    """The manifest in a form that fits an annotation: what drift is measured against."""
    text = json.dumps(obj, sort_keys=True, separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(text, 9)).decode()


def applied(live: Object) -> Object | None:
    """The manifest that was applied last, read from the live object; None where it is absent or unreadable."""
    record = (live["metadata"].get("annotations") or {}).get(names.APPLIED_ANNOTATION)
    if not record:
        return None
    try:
        obj = json.loads(zlib.decompress(base64.b64decode(record)))
    except (binascii.Error, zlib.error, ValueError):
        return None
    return obj if isinstance(obj, dict) else None


def differs(wanted: Object, live: Object) -> bool:
    """Whether `wanted` (dressed) is another manifest than the one applied last."""
    recorded = (live["metadata"].get("annotations") or {}).get(names.APPLIED_ANNOTATION)
    if recorded == wanted["metadata"]["annotations"][names.APPLIED_ANNOTATION]:
        return False
    # Another zlib packs the same manifest into other bytes.
    before = applied(live)
    return before is None or before != applied(wanted)


def ownership(live: Object, *, name: str, uid: str) -> Ownership:
    """Whose object of our name this is.

    ours: its owner has our uid. leaving: it is being deleted, or its owner is an earlier ModelDeployment of the
    same name (a dead uid: the garbage collector takes it away). foreign: hands off.
    """
    owner = _owner(live)
    mine = owner is not None and owner.get("uid") == uid
    marked = (live["metadata"].get("annotations") or {}).get(names.OWNER_UID_ANNOTATION) == uid
    dead = owner is not None and owner.get("name") == name and owner.get("uid") != uid
    if live["metadata"].get("deletionTimestamp") or dead:
        return "leaving"
    return "ours" if mine or marked else "foreign"


def owned_by(live: Object, uid: str) -> bool:
    """Whether the ownerReference says so: all that counts while deleting (`--cascade=orphan`, contract §4.10)."""
    owner = _owner(live)
    return owner is not None and owner.get("uid") == uid


def owner_uid(live: Object) -> str | None:
    """The uid of the ModelDeployment that owns the object: what helper stores are indexed by."""
    owner = _owner(live)
    return str(owner["uid"]) if owner else None


def owner_name(live: Object) -> str | None:
    owner = _owner(live)
    return str(owner["name"]) if owner else None


def _owner(live: Object) -> Mapping[str, Any] | None:
    for reference in live["metadata"].get("ownerReferences") or ():
        if reference.get("kind") == names.MODEL_DEPLOYMENT and str(reference.get("apiVersion")).startswith(
            f"{names.GROUP}/"
        ):
            found: Mapping[str, Any] = reference
            return found
    return None
