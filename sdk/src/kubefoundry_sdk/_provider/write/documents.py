"""YAML documents in a field: an edit is merged into the applied text instead of replacing it.

If `spec.serveConfigV2` or a ConfigMap's entry were plain text, any change by the user would replace the whole text by
the new render, including everything that a newer provider renders differently. So the text is decoded and rebased
like any other part of a manifest (`change.rebase`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubefoundry_sdk._api import foreign_yaml
from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.contract import Document
from kubefoundry_sdk._provider.write import change


def rebase(documents: Sequence[Document], applied: Object, old: Object, new: Object) -> Object:
    """Return the result of `change.rebase`, where texts that are documents are compared by content."""
    merged: Object = change.rebase(applied, old, new)
    for document in documents:
        if document.kind != new.get("kind"):
            continue
        texts = [at(obj, document.path) for obj in (applied, old, new)]
        if not all(isinstance(text, str) for text in texts) or same(texts[1], texts[2]):
            continue
        try:
            applied_content, old_content, desired = (foreign_yaml.decode(text) for text in texts)
        except foreign_yaml.Unreadable:
            continue
        content = change.rebase(applied_content, old_content, desired)
        text = texts[0] if same(content, applied_content) else document.write(content)
        merged = replaced(merged, document.path, text)
    return merged


def at(obj: Any, path: Sequence[str]) -> Any:
    """Return the value at the path, or None."""
    for key in path:
        obj = obj.get(key) if isinstance(obj, Mapping) else None
    return obj


def replaced(obj: Object, path: Sequence[str], value: Any) -> Object:
    """Return the object with another value at the path. Raise KeyError if a map on the way is missing."""
    first, *rest = path
    return {**obj, first: replaced(obj[first], rest, value) if rest else value}
