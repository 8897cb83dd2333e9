"""YAML documents in a field: an edit is merged into the applied text instead of replacing it.

As plain text, `spec.serveConfigV2` or a ConfigMap's entry would be taken from the new render as a whole whenever the
user changes anything in it, together with everything that a newer provider renders differently. Parsed, they are
rebased like any other part of a manifest (`change.rebase`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubefoundry_sdk.api.equality import same
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.contract import Document
from kubefoundry_sdk.provider.write import change

LIMIT: Final = 64 * 1024
"""The longest document in characters that is parsed; providers render a few thousand. 256 KiB of brackets take
seconds to parse, in which nobody else's objects are reconciled."""
DEPTH: Final = 32
"""Levels of nesting that are parsed."""


class Unacceptable(ValueError):
    """Why a text is not parsed; to follow the text's name in a sentence."""


def rebase(documents: Sequence[Document], applied: Object, old: Object, new: Object) -> Object:
    """As `change.rebase`, comparing and changing texts that are documents of that kind by their content."""
    merged: Object = change.rebase(applied, old, new)
    for document in documents:
        if document.kind != new.get("kind"):
            continue
        texts = [at(obj, document.path) for obj in (applied, old, new)]
        if not all(isinstance(text, str) for text in texts) or same(texts[1], texts[2]):
            continue
        try:
            before, was, wanted = (parsed(text) for text in texts)
        except Unacceptable:
            continue
        content = change.rebase(before, was, wanted)
        text = texts[0] if same(content, before) else document.write(content)
        merged = replaced(merged, document.path, text)
    return merged


def parsed(text: str, *, depth: int = DEPTH, limit: int = LIMIT) -> Any:
    """The content.

    Raises Unacceptable if it is not YAML, has more than `limit` characters, is nested more than `depth` levels deep,
    or contains aliases, with which a short text can expand to any size.
    """
    import yaml  # most providers have no documents

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if len(text) > limit:
        raise Unacceptable(f"has more than {limit} characters")
    level = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent):
                raise Unacceptable("contains aliases, which are not accepted")
            if level > depth:
                raise Unacceptable(f"is nested more than {depth} levels deep")
        return yaml.load(text, Loader=loader)  # a safe loader
    except Unacceptable:
        raise
    except (yaml.YAMLError, TypeError, OverflowError, ValueError) as error:
        raise Unacceptable(f"is not YAML: {' '.join(str(error).split())}") from error


def at(obj: Any, path: Sequence[str]) -> Any:
    """The value at the path, or None."""
    for key in path:
        obj = obj.get(key) if isinstance(obj, Mapping) else None
    return obj


def replaced(obj: Object, path: Sequence[str], value: Any) -> Object:
    """The object with another value at the path; all maps on the way exist. Raises KeyError."""
    first, *rest = path
    return {**obj, first: replaced(obj[first], rest, value) if rest else value}
