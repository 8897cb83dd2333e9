"""What the runtime adds to rendered objects, and reads from live ones (contract §4: names, ownership)."""

from __future__ import annotations

import base64
import binascii
import copy
import json
import lzma
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from kubefoundry_sdk.api import managed_fields, names
from kubefoundry_sdk.api.foreign_json import decode
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.contract import Deployment

RECORD: Final = (names.APPLIED_ANNOTATION, names.APPLIED_GENERATION_ANNOTATION)
PROVIDER_LABEL: Final = f"{names.PREFIX}provider"

RECORD_BYTES: Final = 2 * 2**20
"""The longest record in bytes that is read. Users can write the annotation, and 20 kB of it may inflate to half a
gigabyte; we write a spec of at most 128 KiB and what is rendered from it."""

RECORD_BRACKETS: Final = 100_000
"""The most maps and lists that a record is read with: 400 bytes may inflate to so many that reading them takes three
seconds, in which nobody else is served. With both bounds it takes 0.15."""

WINDOW: Final = 32 * 1024
"""Bytes that deflate looks back. A longer record's spec repeats its manifest from further back, so it is packed as
xz: else an admitted spec could need more than the 256 KiB that Kubernetes allows for all annotations."""

XZ: Final = b"\xfd7zXZ\x00"
"""What a record packed as xz begins with."""

XZ_PRESET: Final = 1
XZ_MEMORY: Final = 16 * 2**20
"""Bytes that unpacking may take: preset 1 needs 2 MiB, and others may write what asks for 4 GiB."""

_VERSIONED: Final = re.compile(r"([a-z0-9][a-z0-9.\-]*/)?v[0-9]+((alpha|beta)[0-9]+)?")
"""An apiVersion in Kubernetes' format."""

Ownership = Literal["ours", "leaving", "foreign"]


def dress(rendered: Object, deployment: Deployment, provider: str, image: str | None = None) -> Object:
    """The object to apply: with namespace, owner, labels, annotations, and the record of all that.

    image: the one that serves, for the record.
    Labels (contract §7): those of the ModelDeployment under `kubefoundry.ai/`, and the provider that created it.
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
    refresh = deployment.annotations.get(names.REFRESH_ANNOTATION, "")
    record = Record(content(obj), dict(deployment.raw_spec), refresh, image)
    meta["annotations"][names.APPLIED_ANNOTATION] = pack(record)
    meta["annotations"][names.APPLIED_GENERATION_ANNOTATION] = str(deployment.generation)
    return obj


def selector(provider: str) -> dict[str, str]:
    """The list or watch parameters that select the provider's objects of a kind that others use, too."""
    return {"labelSelector": f"{names.MANAGED_BY_LABEL}={names.MANAGED_BY},{PROVIDER_LABEL}={provider}"}


@dataclass(frozen=True, slots=True)
class Record:
    """What was applied last, and from what: the manifest without this record, the ModelDeployment's spec, the value
    of its refresh annotation, and the image that serves (None if the upstream chooses it)."""

    manifest: Object
    spec: Object
    refresh: str
    image: str | None


def content(obj: Object) -> Object:
    """A dressed object without its record."""
    annotations = {
        key: value for key, value in obj["metadata"].get("annotations", {}).items() if key not in RECORD
    }
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def in_version(record: Record, api_version: str) -> Record:
    """The record as if that version had been applied, if versions differ in nothing but their names."""
    return replace(record, manifest={**record.manifest, "apiVersion": api_version})


def body(recorded: Object) -> Object:
    """A manifest without its metadata."""
    return {key: value for key, value in recorded.items() if key != "metadata"}


def pack(record: Record) -> str:
    """The record, encoded for an annotation."""
    parts = [record.manifest, record.spec, record.refresh, record.image]
    text = json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()
    packed = zlib.compress(text, 9) if len(text) <= WINDOW else lzma.compress(text, preset=XZ_PRESET)
    return base64.b64encode(packed).decode()


def applied(live: Object) -> Record | None:
    """What was applied last, read from the live object; None if the record is absent or unreadable."""
    packed = (live["metadata"].get("annotations") or {}).get(names.APPLIED_ANNOTATION)
    if not packed:
        return None
    try:
        data = base64.b64decode(packed)
        inflate: zlib._Decompress | lzma.LZMADecompressor = (
            lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY) if data.startswith(XZ) else zlib.decompressobj()
        )
        text = inflate.decompress(data, RECORD_BYTES)
        if not inflate.eof or text.count(b"{") + text.count(b"[") > RECORD_BRACKETS:
            return None
        manifest, spec, refresh, image = decode(text)
    except (binascii.Error, zlib.error, lzma.LZMAError, ValueError, TypeError):
        return None
    if not (
        isinstance(manifest, dict)
        and isinstance(spec, dict)
        and isinstance(meta := manifest.get("metadata"), dict)
        and all(isinstance(meta.get(key, {}), dict) for key in ("labels", "annotations"))
        and isinstance(image, str | None)
        # It becomes part of a URL (`version_drift`).
        and _VERSIONED.fullmatch(str(manifest.get("apiVersion", "v1")))
    ):
        return None
    return Record(manifest, spec, str(refresh), image)


def ownership(live: Object, *, name: str, uid: str) -> Ownership:
    """Who owns the object of our name.

    ours: its owner has our uid.
    leaving: it is being deleted, or its owner is an earlier ModelDeployment of the same name (a uid that no longer
        exists: the garbage collector will delete it).
    foreign: do not touch it.
    """
    owner = _owner(live)
    dead = owner is not None and owner.get("name") == name and owner.get("uid") != uid
    if live["metadata"].get("deletionTimestamp") or dead:
        return "leaving"
    return "ours" if made_for(live, uid) else "foreign"


def made_for(live: Object, uid: str) -> bool:
    """Whether ownerReference or annotation names that ModelDeployment."""
    marked = (live["metadata"].get("annotations") or {}).get(names.OWNER_UID_ANNOTATION) == uid
    return marked or owned_by(live, uid)


def owned_by(live: Object, uid: str) -> bool:
    """Whether the ownerReference names it: all that counts while deleting (`--cascade=orphan`, contract §4.10)."""
    owner = _owner(live)
    return owner is not None and owner.get("uid") == uid


def made_by(live: Object, uid: str, manager: str) -> bool:
    """Whether the provider with that field manager created it for that ModelDeployment, as far as can be
    determined."""
    return made_for(live, uid) and manager in managed_fields.managers(live)


def owner_uid(live: Object) -> str | None:
    """The uid of the ModelDeployment that the object was created for; helper stores are indexed by it."""
    owner = _owner(live)
    marked = (live["metadata"].get("annotations") or {}).get(names.OWNER_UID_ANNOTATION)
    return str(owner["uid"]) if owner else marked


def owner_name(live: Object) -> str | None:
    owner = _owner(live)
    return str(owner["name"]) if owner else None


def _owner(live: Object) -> Mapping[str, Any] | None:
    """The garbage collector cannot resolve an owner of a version that is not served, and never deletes the object."""
    for reference in live["metadata"].get("ownerReferences") or ():
        of = (reference.get("apiVersion"), reference.get("kind"))
        if of == (names.API_VERSION, names.MODEL_DEPLOYMENT):
            found: Mapping[str, Any] = reference
            return found
    return None
