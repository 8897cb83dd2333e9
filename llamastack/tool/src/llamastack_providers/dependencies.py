"""What packages that lie side by side ask of one another: no imports, no network (sources §5.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version


@dataclass(frozen=True, slots=True)
class Distribution:
    """An installed package. name: as PEP 503 writes it. owner: id of the provider that brings it, empty for none."""

    name: str
    version: str
    requires: tuple[str, ...]
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Unmet:
    """`needs` requires something that `found` is not; found is None where nobody brings it."""

    needs: Distribution
    requirement: str
    found: Distribution | None


def same_version(one: str, other: str) -> bool:
    """Whether two texts are one version ("1.0" and "1.0.0" are)."""
    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return one == other


def unmet(present: Mapping[str, Distribution]) -> Iterator[Unmet]:
    """Every requirement of `present` (by name) whose marker holds here and that is not met, in the order of names."""
    extras = _extras_in_use(present.values())
    for name in sorted(present):
        for requirement in _requirements(present[name], extras.get(name, set())):
            found = present.get(canonicalize_name(requirement.name))
            if found is None or not _allows(requirement, found.version):
                yield Unmet(present[name], str(requirement), found)


def wanted_by(name: str, among: Iterable[Distribution]) -> Iterator[str]:
    """Who requires the package, and in which words."""
    for distribution in among:
        for requirement in _requirements(distribution, ()):
            if canonicalize_name(requirement.name) == name:
                yield f"{distribution.name} {distribution.version} requires {requirement}"


def _extras_in_use(distributions: Iterable[Distribution]) -> dict[str, set[str]]:
    """The extras that some requirement asks for, and those that these ask for in turn."""
    everything = list(distributions)
    extras: dict[str, set[str]] = {}
    grown = True
    while grown:
        grown = False
        for distribution in everything:
            for requirement in _requirements(distribution, extras.get(distribution.name, set())):
                known = extras.setdefault(canonicalize_name(requirement.name), set())
                if not requirement.extras <= known:
                    known |= requirement.extras
                    grown = True
    return extras


def _requirements(distribution: Distribution, extras: Iterable[str]) -> Iterator[Requirement]:
    for line in distribution.requires:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            # what installers cannot read they ignore as well
            continue
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *sorted(extras))):
            yield requirement


def _allows(requirement: Requirement, version: str) -> bool:
    try:
        return requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return True
