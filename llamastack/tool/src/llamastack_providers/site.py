"""The installed packages where preflight runs: the providers' tree, followed by the distribution's own."""

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

Found = importlib.metadata.Distribution


@dataclass(frozen=True, slots=True)
class Site:
    """provided: packages of the providers. base: those of the image. Both by name; provided ones are found first."""

    provided: Mapping[str, Distribution]
    base: Mapping[str, Distribution]


def read(packages: Path, records: Mapping[str, Record]) -> Site:
    """Raises DependencyConflict if the tree itself has a package twice, and OSError."""
    owner_of = {one.name: record.provider_id for record in records.values() for one in record.distributions}
    provided: dict[str, Distribution] = {}
    for one in _distributions([str(packages)]):
        owned = Distribution(one.name, one.version, one.requires, owner_of.get(one.name, ""))
        twin = provided.setdefault(one.name, owned)
        if twin.version != one.version:
            reason = f"{one.name} is installed in the versions {twin.version} and {one.version}"
            raise Failure(Code.DependencyConflict, reason, provider_id=twin.owner)
    base: dict[str, Distribution] = {}
    for one in _distributions(base_path(packages)):
        base.setdefault(one.name, one)
    return Site(provided, base)


def base_path(packages: Path) -> list[str]:
    """Where Python finds packages here, without the providers' tree and this tool itself."""
    own = Path(__file__).resolve().parent.parent
    return [entry for entry in sys.path if entry and Path(entry).resolve() not in (packages.resolve(), own)]


def findings(site: Site) -> Iterator[Failure]:
    """What is missing or excluded with the packages of providers and image together.

    A base image is often inconsistent by itself; only what involves a provider's package is reported.
    """
    for miss in dependencies.unmet({**site.base, **site.provided}):
        found = miss.found
        needs = f"{miss.needs.name} {miss.needs.version}{_whose(miss.needs)} requires {miss.requirement}"
        if found is None and miss.needs.name in site.provided:
            reason = f"{needs}, which is neither in the image of the provider nor in the distribution"
            yield Failure(Code.DependencyMissing, reason, provider_id=miss.needs.owner)
        elif found is not None and not {miss.needs.name, found.name}.isdisjoint(site.provided):
            owner = found.owner or miss.needs.owner
            reason = f"{needs}, but it would get {found.name} {found.version}{_whose(found)}"
            yield Failure(Code.DependencyConflict, reason, provider_id=owner)


def shadowed(site: Site) -> list[str]:
    """A warning for each package of a provider that replaces another version in the image (NFR-004)."""
    return [
        f"shadows-base: {name} {one.version}{_whose(one)} replaces {name} {site.base[name].version}"
        for name, one in sorted(site.provided.items())
        if name in site.base and not dependencies.same_version(one.version, site.base[name].version)
    ]


def foreign(packages: Path, records: Mapping[str, Record]) -> Iterator[Failure]:
    """Packages and shared objects that this Python cannot load, without importing any (SC-005). Raises OSError."""
    owner_of = {path: record.provider_id for record in records.values() for path in record.files}
    for found in importlib.metadata.distributions(path=[str(packages)]):
        tags = machine.parse(_tag_lines(found))
        if tags and not machine.supports(tags):
            name = canonicalize_name(found.metadata["Name"])
            owner = next((one.provider_id for one in records.values() if name in _names(one)), "")
            shown = ", ".join(sorted(map(str, tags))[:3])
            reason = f"{name} {found.version} is built for {shown}; this container has {machine.here()}"
            yield Failure(Code.WrongPlatform, reason, provider_id=owner)
    for path in _shared_objects(packages):
        built_for = machine.of_file(packages / path)
        if built_for is not None and not machine.fits(built_for):
            reason = f"{path} is built for {built_for}; this container runs {machine.ours()}"
            yield Failure(Code.WrongArchitecture, reason, provider_id=owner_of.get(path, ""))


def _distributions(path: Sequence[str]) -> Iterator[Distribution]:
    for found in importlib.metadata.distributions(path=list(path)):
        # a directory that only looks like a package's metadata has no name
        if name := found.metadata["Name"]:
            yield Distribution(canonicalize_name(name), found.version, tuple(found.requires or ()))


def _tag_lines(found: Found) -> Iterable[str]:
    lines = (found.read_text("WHEEL") or "").splitlines()
    return [line.removeprefix("Tag:").strip() for line in lines if line.startswith("Tag:")]


def _shared_objects(packages: Path) -> list[str]:
    found = [
        Path(folder, name)
        for folder, _, names in os.walk(packages)
        for name in names
        if machine.is_shared_object(name)
    ]
    return sorted(path.relative_to(packages).as_posix() for path in found)


def _names(record: Record) -> set[str]:
    return {one.name for one in record.distributions}


def _whose(one: Distribution) -> str:
    return f" of provider '{one.owner}'" if one.owner else " of the distribution image"
