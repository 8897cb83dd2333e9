"""The applied manifests with the user's change rebased onto them: main object and helpers (contract §4.19)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.contract import Document, Provider, Rendered
from kubefoundry_sdk._provider.write import change, documents, manifest
from kubefoundry_sdk._provider.write.helpers import Mark, mark

_METADATA: Final = ("labels", "annotations")


def merged(
    provider: Provider,
    rendered: Rendered,
    base: Rendered | None,
    record: manifest.Record | None,
    before: Mapping[Mark, tuple[Object, Object]],
) -> Rendered:
    """Return the applied manifests with the user's change rebased onto them, or the new render.

    Args:
        provider: The provider.
        rendered: The new render.
        base: This provider's render of the spec that was applied; None to replace everything.
        record: The record of the last apply.
        before: For each existing helper, its applied manifest, and this provider's render of the spec that it was
            applied for.
    """
    if base is None or record is None:
        return rendered
    texts = provider.documents
    if record.manifest.get("apiVersion") == rendered.main["apiVersion"]:
        main = _rebased(texts, record.manifest, base.main, rendered.main)
    else:
        main = {**rendered.main, "metadata": _metadata(record.manifest, base.main, rendered.main)}
    helpers = [
        _rebased(texts, *before[helper_mark], obj) if (helper_mark := mark(obj)) in before else obj
        for obj in rendered.helpers
    ]
    return Rendered(main, tuple(helpers), rendered.notes)


def _rebased(texts: Sequence[Document], applied: Object, old: Object, new: Object) -> Object:
    merged = documents.rebase(texts, manifest.body(applied), manifest.body(old), manifest.body(new))
    return {**merged, "metadata": _metadata(applied, old, new)}


def _metadata(applied: Object, old: Object, new: Object) -> dict[str, Any]:
    """Return the metadata of `new`, with labels and annotations rebased like everything else.

    `manifest.with_ownership` then adds KubeFoundry's own labels and annotations with their current values.
    """
    meta = {key: value for key, value in new["metadata"].items() if key not in _METADATA}
    for key in _METADATA:
        applied_values, old_values, new_values = (
            obj["metadata"].get(key) or {} for obj in (applied, old, new)
        )
        theirs = {name: value for name, value in applied_values.items() if not _is_ours(name)}
        ours = {name: value for name, value in new_values.items() if _is_ours(name)}
        if values := {**change.rebase(theirs, old_values, new_values), **ours}:
            meta[key] = values
    return meta


def _is_ours(name: str) -> bool:
    """Check whether a label or annotation is brought up to date by each apply, also if the user changed nothing."""
    return name.startswith(names.PREFIX) and name != names.MODEL_SOURCE_LABEL
