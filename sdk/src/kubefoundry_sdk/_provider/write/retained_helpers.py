"""Keeps helpers that a provider no longer renders while the live main object still uses them.

A newer provider, or one with other settings, may serve the same spec in another way. A serving object stays as it was
applied until the user changes it, and so do its helpers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.contract import Rendered
from kubefoundry_sdk._provider.write import documents, helper_names, manifest
from kubefoundry_sdk._provider.write.helpers import Mark, marked


def find(
    paths: Sequence[str],
    desired: Rendered,
    base: Rendered | None,
    record: manifest.Record | None,
    live_helpers: Mapping[Mark, Object],
) -> tuple[Object, ...]:
    """Return the live helpers to keep although neither the new spec nor the old one renders them.

    The record and the live helpers have plain names. `base` is the render for the old spec, as in `merge.merged`. A
    helper in it that `desired` lacks was removed by the user's change.
    """
    if base is None or record is None:
        return ()
    rendered = marked([*base.helpers, *desired.helpers])
    used = _named(paths, desired.main)
    return tuple(
        live
        for helper_mark, live in live_helpers.items()
        if helper_mark not in rendered and (helper_mark[1] in used or not helper_names.by_content(live))
    )


def complete(
    paths: Sequence[str], applied: Object, used: Mapping[str, str], existing: Mapping[Mark, Object]
) -> bool:
    """Check whether each helper that an applied main object names exists or is rendered.

    `used` is the result of `helper_names.names_in_use`.
    """
    return _named(paths, applied) <= {*used.values(), *(name for _, name in existing)}


def _named(paths: Sequence[str], main: Object) -> set[str]:
    values = (documents.at(main, path.split(".")) for path in paths)
    return {name for name in values if isinstance(name, str)}
