"""Checks a provider's packages against those of the providers before it (FR-024, sources §5.4).

The distribution's packages are not visible here; preflight checks them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llamastack_providers.dependencies import Distribution, same_version, unmet, wanted_by
from llamastack_providers.errors import Code, Failure
from llamastack_providers.record import Record


def check(own: Sequence[Distribution], others: Mapping[str, Record]) -> None:
    """Raises DependencyConflict with every conflict, the first of them in the reason."""
    mine = {one.name: one for one in own}
    before: dict[str, Distribution] = {}
    for record in others.values():
        for one in record.distributions:
            before.setdefault(one.name, one)
    found = [
        f"{_asked_for(one, own)} excludes {_whose(before[name], others)}"
        for name, one in mine.items()
        if name in before and not same_version(one.version, before[name].version)
    ]
    for miss in unmet({**before, **mine}):
        if miss.found is not None and (miss.needs.name in mine or miss.found.name in mine):
            needs, got = _whose(miss.needs, others), _whose(miss.found, others)
            found.append(f"{needs} requires {miss.requirement}, which excludes {got}")
    if found:
        raise Failure(Code.DependencyConflict, found[0], detail="\n".join(found))


def _asked_for(one: Distribution, own: Sequence[Distribution]) -> str:
    """The package, and which part of the same image requires it."""
    wanted = next(wanted_by(one.name, own), "")
    return f"{one.name} {one.version} ({wanted})" if wanted else f"{one.name} {one.version}"


def _whose(one: Distribution, others: Mapping[str, Record]) -> str:
    record = others.get(one.owner)
    by = f" of provider '{one.owner}' (image: {record.image})" if record else " of this image"
    return f"{one.name} {one.version}{by}"
