"""Checks a provider's packages against those of the providers before it (FR-024, sources §5.4).

The distribution's packages are not visible here. Preflight checks them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llamastack_providers.dependencies import Distribution, same_version, unmet, wanted_by
from llamastack_providers.errors import Code, Failure
from llamastack_providers.record import Record


def check(own: Sequence[Distribution], others: Mapping[str, Record]) -> None:
    """Check the provider's packages for conflicts.

    Raises:
        Failure: DependencyConflict with every conflict, the first of them in the reason.
    """
    own_by_name = {package.name: package for package in own}
    before: dict[str, Distribution] = {}
    for record in others.values():
        for package in record.distributions:
            before.setdefault(package.name, package)
    conflicts = [
        f"{_describe_requirement(package, own)} excludes {_describe(before[name], others)}"
        for name, package in own_by_name.items()
        if name in before and not same_version(package.version, before[name].version)
    ]
    for gap in unmet({**before, **own_by_name}):
        if gap.installed is not None and (gap.needs.name in own_by_name or gap.installed.name in own_by_name):
            needs, got = (
                _describe(gap.needs, others),
                _describe(gap.installed, others),
            )
            conflicts.append(f"{needs} requires {gap.requirement}, which excludes {got}")
    if conflicts:
        raise Failure(Code.DependencyConflict, conflicts[0], detail="\n".join(conflicts))


def _describe_requirement(package: Distribution, own: Sequence[Distribution]) -> str:
    """Describe the package, and the part of the same image that requires it."""
    requirement = next(wanted_by(package.name, own), "")
    return (
        f"{package.name} {package.version} ({requirement})"
        if requirement
        else f"{package.name} {package.version}"
    )


def _describe(package: Distribution, others: Mapping[str, Record]) -> str:
    record = others.get(package.owner)
    owner_text = f" of provider '{package.owner}' (image: {record.image})" if record else " of this image"
    return f"{package.name} {package.version}{owner_text}"
