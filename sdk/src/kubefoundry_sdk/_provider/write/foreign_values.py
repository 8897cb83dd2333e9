"""Parts of the main object that others write while it exists: an autoscaler's counts, an operator's own choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import mapping
from kubefoundry_sdk._provider.contract import Provider, Rendered
from kubefoundry_sdk._provider.write import documents


def paths(provider: Provider) -> tuple[str, ...]:
    """Return the paths at which a change by others is not drift."""
    return (*provider.ignored_differences, *provider.scaled)


def keep(provider: Provider, main: Object, live: Object, base: Rendered | None, rendered: Rendered) -> None:
    """Give `main` the live values at the paths that others own once the object exists.

    A `scaled` path keeps its live value until the user changes the field.

    Args:
        provider: The provider.
        main: The main object to apply. The map itself is changed, and none of the maps and lists in it, which the
            render may share.
        live: The live main object.
        base: This provider's render of the spec that was applied, None if that spec is unknown.
        rendered: The render of the current deployment.
    """
    untouched = [
        path
        for path in provider.scaled
        if base is None
        or same(documents.at(base.main, path.split(".")), documents.at(rendered.main, path.split(".")))
    ]
    for path in (*provider.ignored_differences, *untouched):
        main.update(_kept(live, main, path.split(".")))


def _kept(live: Any, main: Any, path: Sequence[str]) -> Any:
    """Return `main` with the live values at the path, in copies of the maps and lists on the way."""
    if not path:
        return live
    name, items, rest = path[0].removesuffix("[*]"), path[0].endswith("[*]"), path[1:]
    if name not in mapping(live) or name not in mapping(main):
        return main
    theirs, ours = live[name], main[name]
    if not items:
        return {**main, name: _kept(theirs, ours, rest)}
    if not rest or not isinstance(theirs, list) or not isinstance(ours, list):
        return main
    kept = [_kept(*pair, rest) for pair in zip(theirs, ours, strict=False)]
    return {**main, name: [*kept, *ours[len(kept) :]]}
