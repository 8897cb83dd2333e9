"""Evaluates requirements among installed packages: no imports, no network (sources §5.4)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version


@dataclass(frozen=True, slots=True)
class Distribution:
    """An installed package.

    Attributes:
        name: Normalized name (PEP 503).
        version: Its version.
        requires: The `Requires-Dist` lines.
        owner: Id of the provider that installs it, empty for none.
    """

    name: str
    version: str
    requires: tuple[str, ...]
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Unmet:
    """An unmet requirement.

    Attributes:
        needs: The package that has the requirement.
        requirement: Its text.
        installed: The package that does not meet it, None if none is installed.
    """

    needs: Distribution
    requirement: str
    installed: Distribution | None


def same_version(first: str, second: str) -> bool:
    """Check whether two texts are the same version ("1.0" and "1.0.0" are)."""
    try:
        return Version(first) == Version(second)
    except ValueError:
        return first == second


def unmet(present: Mapping[str, Distribution]) -> Iterator[Unmet]:
    """Yield every unmet requirement of `present` (by name) whose marker applies here, ordered by name."""
    extras = _extras_in_use(present.values())
    for name in sorted(present):
        for requirement in _requirements(present[name], extras.get(name, set())):
            installed = present.get(canonicalize_name(requirement.name))
            if installed is None or not _allows(requirement, installed.version):
                yield Unmet(present[name], str(requirement), installed)


def wanted_by(name: str, among: Iterable[Distribution]) -> Iterator[str]:
    """Yield a description of each requirement for the package."""
    for distribution in among:
        for requirement in _requirements(distribution, ()):
            if canonicalize_name(requirement.name) == name:
                yield f"{distribution.name} {distribution.version} requires {requirement}"


def _extras_in_use(distributions: Iterable[Distribution]) -> dict[str, set[str]]:
    """Return the extras that some requirement requests, directly or through other extras."""
    parsed = {item.name: _parsed(item) for item in distributions}
    extras: dict[str, set[str]] = {}
    pending = [(name, "") for name in parsed]
    while pending:
        name, extra = pending.pop()
        for requirement in parsed.get(name, ()):
            if requirement.extras and _applies(requirement, extra):
                target = canonicalize_name(requirement.name)
                new_extras = requirement.extras - extras.setdefault(target, set())
                extras[target] |= new_extras
                pending += [(target, item) for item in sorted(new_extras)]
    return extras


def _requirements(distribution: Distribution, extras: Iterable[str]) -> Iterator[Requirement]:
    active_extras = ("", *sorted(extras))
    for requirement in _parsed(distribution):
        if any(_applies(requirement, extra) for extra in active_extras):
            yield requirement


def _parsed(distribution: Distribution) -> list[Requirement]:
    parsed = []
    for line in distribution.requires:
        # Installers ignore invalid requirements, too.
        with contextlib.suppress(ValueError, RecursionError):
            parsed.append(Requirement(line))
    return parsed


def _applies(requirement: Requirement, extra: str) -> bool:
    try:
        return requirement.marker is None or requirement.marker.evaluate({"extra": extra})
    except (ValueError, RecursionError):
        # The marker compares values that have no order.
        return False


def _allows(requirement: Requirement, version: str) -> bool:
    try:
        return requirement.specifier.contains(Version(version), prereleases=True)
    except ValueError:
        # The text is no version, or has more digits than Python reads.
        return True
