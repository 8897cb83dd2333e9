"""Reads the installed packages where preflight runs: the providers' tree, followed by the distribution's own."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from llamastack_providers import dependencies, machine
from llamastack_providers.dependencies import Distribution
from llamastack_providers.errors import Code, Failure
from llamastack_providers.record import Record

InstalledPackage = importlib.metadata.Distribution


@dataclass(frozen=True, slots=True)
class Site:
    """The installed packages by name.

    Attributes:
        provided: Packages of the providers, which Python finds first.
        base: Packages of the image.
    """

    provided: Mapping[str, Distribution]
    base: Mapping[str, Distribution]


def read(packages: Path, records: Mapping[str, Record]) -> Site:
    """Read the installed packages.

    Raises:
        Failure: DependencyConflict, if the tree itself has a package twice.
        OSError: A file is not readable.
    """
    owner_of = {
        package.name: record.provider_id for record in records.values() for package in record.distributions
    }
    provided: dict[str, Distribution] = {}
    for package in _distributions([str(packages)]):
        owned = Distribution(package.name, package.version, package.requires, owner_of.get(package.name, ""))
        twin = provided.setdefault(package.name, owned)
        if twin.version != package.version:
            reason = f"{package.name} is installed in the versions {twin.version} and {package.version}"
            raise Failure(Code.DependencyConflict, reason, provider_id=twin.owner)
    base: dict[str, Distribution] = {}
    for package in _distributions(base_path(packages)):
        base.setdefault(package.name, package)
    return Site(provided, base)


def base_path(packages: Path) -> list[str]:
    """Return the directories in which Python finds packages of the distribution.

    The providers' tree and this tool itself are left out.
    """
    own = Path(__file__).resolve().parent.parent
    return [entry for entry in sys.path if entry and Path(entry).resolve() not in (packages.resolve(), own)]


def findings(site: Site) -> Iterator[Failure]:
    """Yield missing or excluded requirements among the packages of providers and image.

    A base image is often inconsistent by itself, so only requirements that involve a provider's package are
    reported.
    """
    for gap in dependencies.unmet({**site.base, **site.provided}):
        installed = gap.installed
        needs = f"{gap.needs.name} {gap.needs.version}{_describe(gap.needs)} requires {gap.requirement}"
        if installed is None and gap.needs.name in site.provided:
            reason = f"{needs}, which is neither in the image of the provider nor in the distribution"
            yield Failure(Code.DependencyMissing, reason, provider_id=gap.needs.owner)
        elif installed is not None and not {gap.needs.name, installed.name}.isdisjoint(site.provided):
            owner = installed.owner or gap.needs.owner
            reason = f"{needs}, but it would get {installed.name} {installed.version}{_describe(installed)}"
            yield Failure(Code.DependencyConflict, reason, provider_id=owner)


def shadowed(site: Site) -> list[str]:
    """Return a warning for each package of a provider that replaces another version in the image (NFR-004)."""
    return [
        f"shadows-base: {name} {package.version}{_describe(package)} replaces {name} {site.base[name].version}"
        for name, package in sorted(site.provided.items())
        if name in site.base and not dependencies.same_version(package.version, site.base[name].version)
    ]


def foreign(packages: Path, records: Mapping[str, Record]) -> Iterator[Failure]:
    """Yield packages and shared objects that this Python cannot load, without importing any (SC-005).

    Raises:
        OSError: A file is not readable.
    """
    owner_of = {path: record.provider_id for record in records.values() for path in record.files}
    for package in importlib.metadata.distributions(path=[str(packages)]):
        tags = machine.parse(_tag_lines(package))
        if tags and not machine.supports(tags):
            name = canonicalize_name(package.metadata["Name"])
            owner = next((record.provider_id for record in records.values() if name in _names(record)), "")
            shown = ", ".join(sorted(map(str, tags))[:3])
            reason = f"{name} {package.version} is built for {shown}; "
            reason += f"this container has {machine.describe_interpreter()}"
            yield Failure(Code.WrongPlatform, reason, provider_id=owner)
    for path in _shared_objects(packages):
        built_for = machine.of_file(packages / path)
        if built_for is not None and not machine.fits(built_for):
            reason = f"{path} is built for {built_for}; this container runs {machine.own_machine()}"
            yield Failure(Code.WrongArchitecture, reason, provider_id=owner_of.get(path, ""))


def _distributions(path: Sequence[str]) -> Iterator[Distribution]:
    for package in importlib.metadata.distributions(path=list(path)):
        # A directory that only looks like a package's metadata has no name.
        if name := package.metadata["Name"]:
            yield Distribution(canonicalize_name(name), package.version, tuple(package.requires or ()))


def _tag_lines(package: InstalledPackage) -> Iterable[str]:
    lines = (package.read_text("WHEEL") or "").splitlines()
    return [line.removeprefix("Tag:").strip() for line in lines if line.startswith("Tag:")]


def _shared_objects(packages: Path) -> list[str]:
    paths = [
        Path(folder, name)
        for folder, _, names in os.walk(packages)
        for name in names
        if machine.is_shared_object(name)
    ]
    return sorted(path.relative_to(packages).as_posix() for path in paths)


def _names(record: Record) -> set[str]:
    return {package.name for package in record.distributions}


def _describe(package: Distribution) -> str:
    return f" of provider '{package.owner}'" if package.owner else " of the distribution image"
