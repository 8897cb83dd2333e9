"""How far to trust the record on an upstream object: as far as it matches the live object (contract §4, trust).

Anyone who may write annotations there may write anything into the record, and an edit starts from the manifest in the
record. So the recorded manifest is used only where the live object has the same values. Elsewhere, the current
provider's render of the applied spec replaces it, and the user's change is merged into that render.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import mapping
from kubefoundry_sdk._provider.write import drift
from kubefoundry_sdk._provider.write.manifest import Record

_MISSING: Final = object()


def trusted(record: Record, live: Object, fallback: Object) -> Record:
    """Return the record, in which `fallback` replaces the values that the live object does not have.

    A value that is missing in `fallback`, too, is left out. Metadata stays as recorded, because whoever can write the
    record can write labels and annotations, too.
    """
    return compared(record, live, fallback, ())[0]


def compared(
    record: Record, live: Object, fallback: Object, ignored_differences: Sequence[str]
) -> tuple[Record, dict[str, Any]]:
    """Return the trusted record, and the live values that differ from it, by path (`drift.values`).

    Others own `ignored_differences`, and may have changed them.
    """
    fields = drift.by_field(record.manifest, live, ignored_differences)
    if fields.keys() <= {"metadata"}:
        return record, fields.get("metadata", {})
    manifest = {
        key: content
        for key, value in record.manifest.items()
        if (content := value if key in _HEAD else _trusted(value, live.get(key), fallback.get(key, _MISSING)))
        is not _MISSING
    }
    return replace(record, manifest=manifest), drift.values(manifest, live, ignored_differences)


def without_unused_image(record: Record, live: Object) -> Record:
    """Return the record without an image that the live object does not run."""
    if record.image is None or _contains(live, record.image):
        return record
    return replace(record, image=None)


_HEAD: Final = ("apiVersion", "kind", "metadata")


def _trusted(applied: Any, live: Any, fallback: Any) -> Any:
    if drift.holds(applied, live):
        return applied
    if isinstance(applied, dict) and isinstance(live, dict):
        other = mapping(fallback)
        values = {
            key: _trusted(value, live.get(key), other.get(key, _MISSING)) for key, value in applied.items()
        }
        return {key: value for key, value in values.items() if value is not _MISSING}
    if drift.distinct_by(applied, "name") and drift.distinct_by(live, "name"):
        live_items, others = _by_name(live), _by_name(fallback)
        items = [
            _trusted(item, live_items.get(item["name"]), others.get(item["name"], _MISSING))
            for item in applied
        ]
        return [item for item in items if item is not _MISSING]
    return fallback


def _by_name(items: Any) -> dict[str, Any]:
    """Return the items of a list by name, none if they have no distinct names."""
    return {item["name"]: item for item in items} if drift.distinct_by(items, "name") else {}


def _contains(value: Any, text: str) -> bool:
    if isinstance(value, dict):
        return any(_contains(item, text) for key, item in value.items() if key != "metadata")
    if isinstance(value, list):
        return any(_contains(item, text) for item in value)
    return bool(value == text)
