"""Marks that the runtime adds to rendered objects, and reads from live ones (contract §4: names, ownership)."""

from __future__ import annotations

import base64
import binascii
import json
import lzma
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from kubefoundry_sdk._api import managed_fields, names
from kubefoundry_sdk._api.engine_args import ENGINES
from kubefoundry_sdk._api.foreign_json import decode
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import mapping, part
from kubefoundry_sdk._provider import pod_defaults, propagation
from kubefoundry_sdk._provider.contract import Deployment, PodDefaults, Propagation

RECORD_PATH: Final = f"metadata.annotations.{names.APPLIED_ANNOTATION}"

RECORD: Final = (
    names.APPLIED_ANNOTATION,
    names.APPLIED_GENERATION_ANNOTATION,
    names.PROPAGATED_ANNOTATION,
    names.POD_SETTINGS_ANNOTATION,
)
PROVIDER_LABEL: Final = f"{names.PREFIX}provider"

RECORD_BYTES: Final = 2 * 2**20
"""The longest record in bytes that is read. Users can write the annotation, and 20 kB of it may inflate to half a
gigabyte; we write a spec of at most 128 KiB and the manifest that is rendered from it."""

RECORD_BRACKETS: Final = 100_000
"""The most maps and lists in a record that is read. 400 bytes may inflate to so many that decoding them blocks the
process for three seconds. With both limits, decoding takes 0.15 seconds."""

WINDOW: Final = 32 * 1024
"""Bytes by which deflate looks back for repetitions. In a longer record, the spec repeats values of the manifest from
further back, so the record is packed as xz. Packed by deflate, the record of an admitted spec could exceed the
256 KiB that Kubernetes allows for all annotations."""

XZ: Final = b"\xfd7zXZ\x00"
"""The first bytes of a record packed as xz."""

XZ_PRESET: Final = 1
XZ_MEMORY: Final = 16 * 2**20
"""Bytes of memory that unpacking may take: preset 1 needs 2 MiB, and others may write a record that needs 4 GiB."""

_VERSIONED: Final = re.compile(r"([a-z0-9][a-z0-9.\-]*/)?v[0-9]+((alpha|beta)[0-9]+)?")
"""An apiVersion in Kubernetes' format."""

Ownership = Literal["ours", "leaving", "foreign"]


def with_ownership(
    rendered: Object,
    deployment: Deployment,
    provider: str,
    image: str | None = None,
    propagates: Propagation | None = None,
    settings: PodDefaults | None = None,
) -> Object:
    """Return the object to apply: with namespace, owner, labels, annotations, and a record of the whole manifest.

    The labels are those of the ModelDeployment under `kubefoundry.ai/`, and the name of the provider (contract §7).
    The returned object shares everything but its metadata with `rendered`.

    Args:
        rendered: The object as the provider rendered it.
        deployment: The ModelDeployment.
        provider: The provider's name.
        image: The image that serves, for the record.
        propagates: The labels and annotations of the ModelDeployment that a main object follows.
        settings: The administrator's settings for pods with which the object was rendered.
    """
    meta = dict(rendered["metadata"])
    obj = {**rendered, "metadata": meta}
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
    if propagates and (follows := propagation.followed(obj, propagates, deployment)):
        meta["annotations"][names.PROPAGATED_ANNOTATION] = follows
    if settings and (packed := pod_defaults.packed(settings)):
        meta["annotations"][names.POD_SETTINGS_ANNOTATION] = packed
    return obj


def selector(provider: str) -> dict[str, str]:
    """Return the list or watch parameters that select the provider's objects of a kind that others use, too."""
    return {"labelSelector": f"{names.MANAGED_BY_LABEL}={names.MANAGED_BY},{PROVIDER_LABEL}={provider}"}


@dataclass(frozen=True, slots=True)
class Record:
    """The record of the last apply.

    Attributes:
        manifest: The manifest without this record.
        spec: The ModelDeployment's spec.
        refresh: The value of its refresh annotation.
        image: The image that serves; None if the upstream chooses it.
        follows: The labels and annotations that the object follows (`propagation.followed`).
        settings: The administrator's settings for pods with which the object was written.
    """

    manifest: Object
    spec: Object
    refresh: str
    image: str | None
    follows: str = field(default="", compare=False)
    settings: PodDefaults = field(default=PodDefaults(), compare=False)

    @property
    def engine(self) -> str | None:
        """The engine with which the object was applied, None if the record has none that is known."""
        engine = part(self.spec, "engine").get("type")
        return str(engine) if engine in ENGINES else None


def content(obj: Object) -> Object:
    """Return an object of `with_ownership` without its record."""
    annotations = {
        key: value for key, value in obj["metadata"].get("annotations", {}).items() if key not in RECORD
    }
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def in_version(record: Record, api_version: str) -> Record:
    """Return the record in that version, for versions that differ in nothing but their names."""
    return replace(record, manifest={**record.manifest, "apiVersion": api_version})


def body(recorded: Object) -> Object:
    """Return a manifest without its metadata."""
    return {key: value for key, value in recorded.items() if key != "metadata"}


def pack(record: Record) -> str:
    """Return the record, encoded for an annotation."""
    parts = [record.manifest, record.spec, record.refresh, record.image]
    text = json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()
    packed = zlib.compress(text, 9) if len(text) <= WINDOW else lzma.compress(text, preset=XZ_PRESET)
    return base64.b64encode(packed).decode()


def applied(live: Object) -> Record | None:
    """Return the record of the last apply, read from the live object; None if it is absent or unreadable."""
    annotations = mapping(live["metadata"].get("annotations"))
    packed = annotations.get(names.APPLIED_ANNOTATION)
    if not packed:
        return None
    try:
        manifest, spec, refresh, image = _unpacked(packed)
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
    follows = str(annotations.get(names.PROPAGATED_ANNOTATION, ""))
    settings = pod_defaults.unpacked(annotations.get(names.POD_SETTINGS_ANNOTATION))
    return Record(manifest, spec, str(refresh), image, follows, settings)


def _unpacked(packed: Any) -> Any:
    """Return the parts of a record as `pack` encodes them. Raise ValueError for a record that is too large."""
    data = base64.b64decode(packed)
    inflate: zlib._Decompress | lzma.LZMADecompressor = (
        lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY) if data.startswith(XZ) else zlib.decompressobj()
    )
    text = inflate.decompress(data, RECORD_BYTES)
    if not inflate.eof or text.count(b"{") + text.count(b"[") > RECORD_BRACKETS:
        raise ValueError("the record is cut off or too large")
    return decode(text)


class LastRecord:
    """Keeps the record that was unpacked last, because a reconcile reads its main object's record several times."""

    def __init__(self) -> None:
        self._packed: list[Any] = []
        self._record: Record | None = None

    def of(self, live: Object) -> Record | None:
        """Return the record as `applied` does."""
        annotations = live["metadata"].get("annotations") or {}
        packed = [annotations.get(key) for key in RECORD]
        if packed != self._packed:
            self._packed, self._record = packed, applied(live)
        return self._record


def missing_marks(applied: Object, stored: Object, *, watched_by_labels: bool) -> list[str]:
    """Return our marks that are missing or changed on the stored object.

    Without them we no longer see the object, or nobody deletes it.

    Args:
        applied: The applied object, as `with_ownership` returns it.
        stored: The object as stored.
        watched_by_labels: Whether we see only objects with our labels.
    """
    expected, actual = applied["metadata"], stored["metadata"]
    missing = []
    if watched_by_labels:
        missing += _missing_keys(
            "label", expected, actual, "labels", (names.MANAGED_BY_LABEL, PROVIDER_LABEL)
        )
    missing += _missing_keys(
        "annotation", expected, actual, "annotations", (*RECORD, names.OWNER_UID_ANNOTATION)
    )
    if not has_owner_reference(stored, expected["ownerReferences"][0]["uid"]):
        missing.append("the owner reference")
    return missing


def _missing_keys(word: str, expected: Object, actual: Object, field: str, keys: Sequence[str]) -> list[str]:
    live = actual.get(field) or {}
    return [f"{word} {key}" for key in keys if live.get(key) != expected.get(field, {}).get(key)]


def ownership(live: Object, *, name: str, uid: str) -> Ownership:
    """Return who owns the object of our name.

    Returns:
        `ours` if one of its owners has our uid, or the annotation names our uid. `leaving` if it is being
            deleted, or all of its owners are earlier ModelDeployments of the same name (uids that no longer exist:
            the garbage collector will delete it). `foreign` otherwise: do not touch it.
    """
    if live["metadata"].get("deletionTimestamp"):
        return "leaving"
    owners = _owners(live)
    if any(owner.get("uid") == uid for owner in owners):
        return "ours"
    if is_left_over(live, name=name, uid=uid):
        return "leaving"
    return "ours" if is_owned_by(live, uid) else "foreign"


def is_left_over(live: Object, *, name: str, uid: str) -> bool:
    """Check whether an object waits for the garbage collector, because all its owners are gone.

    They are earlier ModelDeployments of that name. The garbage collector keeps an object with another owner.
    """
    owners = _owners(live)
    return (
        bool(owners)
        and not live["metadata"].get("deletionTimestamp")
        and len(owners) == len(live["metadata"].get("ownerReferences") or ())
        and all(owner.get("name") == name and owner.get("uid") != uid for owner in owners)
    )


def is_owned_by(live: Object, uid: str) -> bool:
    """Check whether an ownerReference or the annotation names that ModelDeployment.

    This is enough to observe and to write, not to delete.
    """
    return _marked(live) == uid or has_owner_reference(live, uid)


def has_owner_reference(live: Object, uid: str) -> bool:
    """Check whether an ownerReference names that ModelDeployment.

    Nothing else counts while the ModelDeployment is deleted (`--cascade=orphan`, contract §4.3).
    """
    return any(owner.get("uid") == uid for owner in _owners(live))


def is_created_by(live: Object, uid: str, manager: str, *, has_finalizer: bool = False) -> bool:
    """Check whether the provider with that field manager created the object for that ModelDeployment.

    This is enough to delete the object, although the ModelDeployment stays. Somebody else may have written the uid,
    so a second piece of evidence is required: our entry in managedFields, our labels together with our record of this
    object, or our finalizer on the ModelDeployment. One of the three is enough, because each of them can be lost.

    Args:
        live: The object.
        uid: The ModelDeployment's uid.
        manager: The provider's field manager.
        has_finalizer: Whether the ModelDeployment has our finalizer, which is written before the object.
    """
    if not is_owned_by(live, uid):
        return False
    if has_finalizer or manager in managed_fields.managers(live):
        return True
    provider = manager.removesuffix(names.provider_manager(""))
    return _labelled(live, provider) and recorded_owner(live).get("uid") == uid


def is_restored(live: Object, *, name: str, provider: str) -> bool:
    """Check whether a backup has brought the object back.

    Such an object has no owner, and the labels and the record of an earlier ModelDeployment of that name, whose uid
    no longer exists. The caller checks that no ModelDeployment has that uid.
    """
    meta = live["metadata"]
    if (
        meta.get("deletionTimestamp")
        or any(reference.get("controller") for reference in meta.get("ownerReferences") or ())
        or _owners(live)
        or not _labelled(live, provider)
    ):
        return False
    owner = recorded_owner(live)
    return owner.get("name") == name and owner.get("uid") == _marked(live)


def may_be_written(live: Object, obj: Object) -> bool:
    """Check whether an object of `with_ownership` may be applied over the live one.

    This is so if both belong to the same ModelDeployment, or if a backup has restored the live object.
    """
    owner = owner_uid(obj) or ""
    provider = (obj["metadata"].get("labels") or {}).get(PROVIDER_LABEL, "")
    return is_owned_by(live, owner) or is_restored(live, name=owner_name(obj) or "", provider=provider)


def recorded_owner(live: Object) -> Mapping[str, Any]:
    """Return the ModelDeployment's ownerReference in the record, {} if the record is missing or another object's."""
    record = applied(live)
    if record is None or record.manifest["metadata"].get("name") != live["metadata"]["name"]:
        return {}
    owners = record.manifest["metadata"].get("ownerReferences")
    return (
        next((owner for owner in owners if isinstance(owner, dict)), {}) if isinstance(owners, list) else {}
    )


def owner_uid(live: Object) -> str | None:
    """Return the uid of the ModelDeployment that the object was created for; helper stores are indexed by it."""
    owner = _owner(live)
    return str(owner["uid"]) if owner else _marked(live)


def owner_name(live: Object) -> str | None:
    """Return the name of the ModelDeployment that owns the object, or None."""
    owner = _owner(live)
    return str(owner["name"]) if owner else None


def _owner(live: Object) -> Mapping[str, Any] | None:
    """Return the owner that the annotation names, else the first owner.

    The first owner alone proves nothing, because anybody may put another one in front.
    """
    owners, marked = _owners(live), _marked(live)
    return next((owner for owner in owners if owner.get("uid") == marked), owners[0] if owners else None)


def _owners(live: Object) -> list[Mapping[str, Any]]:
    """Return the owners that are ModelDeployments of a served version.

    The garbage collector cannot resolve an owner of a version that is not served, and never deletes the object.
    """
    return [
        reference
        for reference in live["metadata"].get("ownerReferences") or ()
        if reference.get("apiVersion") in names.API_VERSIONS
        and reference.get("kind") == names.MODEL_DEPLOYMENT
    ]


def _marked(live: Object) -> str | None:
    """Return the uid in the annotation."""
    return (live["metadata"].get("annotations") or {}).get(names.OWNER_UID_ANNOTATION)


def _labelled(live: Object, provider: str) -> bool:
    labels = live["metadata"].get("labels") or {}
    return labels.get(names.MANAGED_BY_LABEL) == names.MANAGED_BY and labels.get(PROVIDER_LABEL) == provider
