"""Helpers that a provider no longer renders, while the main object that it keeps still uses them.

A newer provider, or one with other settings, may serve the same spec in another way. A serving object stays as it was
applied until the user changes it, and so do its helpers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.contract import Rendered
from kubefoundry_sdk.provider.write import content_names, documents, manifest
from kubefoundry_sdk.provider.write.helpers import Mark, marked


def of(
    paths: Sequence[str],
    wanted: Rendered,
    base: Rendered | None,
    record: manifest.Record | None,
    standing: Mapping[Mark, Object],
) -> tuple[Object, ...]:
    """The live helpers to keep although the provider renders them neither for the new spec nor for the old one.

    paths: where a main object names its helpers (`Provider.named_by_content`).
    base: as `carried_over.wanted`. A helper in it that `wanted` lacks was removed by the user's change.
    record, standing: with plain names.
    """
    if base is None or record is None:
        return ()
    rendered = marked([*base.helpers, *wanted.helpers])
    used = _named(paths, wanted.main)
    return tuple(
        live
        for known, live in standing.items()
        if known not in rendered and (known[1] in used or not content_names.by_content(live))
    )


def complete(
    paths: Sequence[str], applied: Object, used: Mapping[str, str], there: Mapping[Mark, Object]
) -> bool:
    """Whether each helper that an applied main object names exists or is rendered. used: as
    `content_names.in_use`."""
    return _named(paths, applied) <= {*used.values(), *(name for _, name in there)}


def _named(paths: Sequence[str], main: Object) -> set[str]:
    found = (documents.at(main, path.split(".")) for path in paths)
    return {name for name in found if isinstance(name, str)}
