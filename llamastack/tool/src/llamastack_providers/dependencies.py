"""Requirements among installed packages: no imports, no network (sources §5.4)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version


@dataclass(frozen=True, slots=True)
class Distribution:
    """An installed package. name: normalized (PEP 503). owner: id of the provider that installs it, empty for
    none."""

    name: str
    version: str
    requires: tuple[str, ...]
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Unmet:
    """`needs` requires something that `found` is not; found is None if it is not installed."""

    needs: Distribution
    requirement: str
    found: Distribution | None


def same_version(one: str, other: str) -> bool:
    """Whether two texts are the same version ("1.0" and "1.0.0" are)."""
    try:
        return Version(one) == Version(other)
    except ValueError:
        return one == other


def unmet(present: Mapping[str, Distribution]) -> Iterator[Unmet]:
    """Every unmet requirement of `present` (by name) whose marker applies here, ordered by name."""
    extras = _extras_in_use(present.values())
    for name in sorted(present):
        for requirement in _requirements(present[name], extras.get(name, set())):
            found = present.get(canonicalize_name(requirement.name))
            if found is None or not _allows(requirement, found.version):
                yield Unmet(present[name], str(requirement), found)


def wanted_by(name: str, among: Iterable[Distribution]) -> Iterator[str]:
    """What requires the package, and in which words."""
    for distribution in among:
        for requirement in _requirements(distribution, ()):
            if canonicalize_name(requirement.name) == name:
                yield f"{distribution.name} {distribution.version} requires {requirement}"


def _extras_in_use(distributions: Iterable[Distribution]) -> dict[str, set[str]]:
    """The extras that some requirement requests, directly or through other extras."""
    parsed = {one.name: _parsed(one) for one in distributions}
    extras: dict[str, set[str]] = {}
    left = [(name, "") for name in parsed]
    while left:
        name, extra = left.pop()
        for requirement in parsed.get(name, ()):
            if requirement.extras and _applies(requirement, extra):
                wanted = canonicalize_name(requirement.name)
                new = requirement.extras - extras.setdefault(wanted, set())
                extras[wanted] |= new
                left += [(wanted, one) for one in sorted(new)]
    return extras


def _requirements(distribution: Distribution, extras: Iterable[str]) -> Iterator[Requirement]:
    wanted = ("", *sorted(extras))
    for requirement in _parsed(distribution):
        if any(_applies(requirement, extra) for extra in wanted):
            yield requirement


def _parsed(distribution: Distribution) -> list[Requirement]:
    found = []
    for line in distribution.requires:
        # installers ignore what they cannot parse, too
        with contextlib.suppress(ValueError, RecursionError):
            found.append(Requirement(line))
    return found


def _applies(requirement: Requirement, extra: str) -> bool:
    try:
        return requirement.marker is None or requirement.marker.evaluate({"extra": extra})
    except (ValueError, RecursionError):
        # a marker that compares what cannot be compared
        return False


def _allows(requirement: Requirement, version: str) -> bool:
    try:
        return requirement.specifier.contains(Version(version), prereleases=True)
    except ValueError:
        # not a version, or one with more digits than Python reads
        return True
