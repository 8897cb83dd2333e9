"""Entries that others add to maps and lists of the main object while it exists: a job queue's node selectors.

An apply replaces an atomic list as a whole, and everything inside its items. So it carries the live entries that were
not applied before. The record of the apply does not have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import mapping
from kubefoundry_sdk._provider.contract import QUEUE_LABEL, Provider


def paths(provider: Provider, live: Object) -> tuple[str, ...]:
    """Return the provider's shared paths if the live main object is in a queue of Kueue, otherwise none."""
    return provider.shared if QUEUE_LABEL in (live["metadata"].get("labels") or {}) else ()


def carry(paths: Iterable[str], main: Object, live: Object, applied: Object) -> None:
    """Give `main` the entries of others at the paths of maps and lists; `[*]` means every item, by index.

    `applied` is the manifest of the last apply. `main` itself is changed, and none of the maps and lists in it.
    """
    for path in paths:
        main.update(_below(main, live, applied, path.split(".")))


def _below(ours: Any, live: Any, applied: Any, path: Sequence[str]) -> Any:
    """Return `ours` with the entries of others below it."""
    if not path:
        return _with_entries(ours, live, applied)
    name, is_list, rest = path[0].removesuffix("[*]"), path[0].endswith("[*]"), path[1:]
    if name not in mapping(live) or not isinstance(ours, dict | None):
        return ours
    ours = ours or {}
    before = mapping(applied).get(name)
    merge = _items if is_list else _below
    content = merge(ours.get(name), live[name], before, rest)
    return {**ours, name: content} if content else ours


def _items(ours: Any, live: Any, applied: Any, path: Sequence[str]) -> Any:
    """Return the items of a list, each with the entries of others, if all three lists have the same length."""
    lists = (ours, live, applied)
    if not all(isinstance(items, list) for items in lists) or len({len(items) for items in lists}) > 1:
        return ours
    return [_below(*items, path) for items in zip(*lists, strict=True)]


def _with_entries(ours: Any, live: Any, applied: Any) -> Any:
    if isinstance(live, dict) and isinstance(ours, dict | None):
        earlier_keys = mapping(applied)
        return {**{key: value for key, value in live.items() if key not in earlier_keys}, **(ours or {})}
    if isinstance(live, list) and isinstance(ours, list | None):
        earlier, desired = applied if isinstance(applied, list) else [], ours or []
        return [*desired, *(item for item in live if item not in earlier and item not in desired)]
    return ours
