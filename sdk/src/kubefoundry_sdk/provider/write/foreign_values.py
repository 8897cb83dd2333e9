"""Parts of the main object that others write while it exists: an autoscaler's counts, an operator's own choice."""

from __future__ import annotations

from kubefoundry_sdk.api.equality import same
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.contract import Provider, Rendered
from kubefoundry_sdk.provider.write import documents


def paths(provider: Provider) -> tuple[str, ...]:
    """Return the paths at which a change by others is not drift."""
    return (*provider.ignored_differences, *provider.scaled)


def keep(provider: Provider, main: Object, live: Object, base: Rendered | None, rendered: Rendered) -> None:
    """Give `main` the live values at the paths that others own once the object exists.

    A `scaled` path keeps its live value until the user changes the field.

    Args:
        provider: The provider.
        main: The main object to apply, which is changed.
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
        _copy(live, main, path.split("."))


def _copy(live: object, main: object, path: list[str]) -> None:
    if not path or not isinstance(live, dict) or not isinstance(main, dict):
        return
    name, items = path[0].removesuffix("[*]"), path[0].endswith("[*]")
    if name not in live or name not in main:
        return
    if items:
        if isinstance(live[name], list) and isinstance(main[name], list):
            for theirs, ours in zip(live[name], main[name], strict=False):
                _copy(theirs, ours, path[1:])
    elif len(path) == 1:
        main[name] = live[name]
    else:
        _copy(live[name], main[name], path[1:])
