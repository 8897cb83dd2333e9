"""Selects the wheels of a provider image, and reads their metadata. Unpacks nothing."""

from __future__ import annotations

import os
import platform
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.specifiers import SpecifierSet
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from llamastack_providers import integrity, layout, machine, shadowing
from llamastack_providers.errors import Code, Failure
from llamastack_providers.package_spec import PackageSpec

PACKAGES: Final = f"{layout.PROVIDER}/packages"
MOST_REQUIREMENTS: Final = 2000
"""`Requires-Dist` lines of a wheel: each may ask for extras, which other lines depend on."""
_FOLDERS: Final = {"scripts": "bin/", "headers": "include/"}
"""Where pip puts what is not found on the path of modules."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel's metadata.

    Attributes:
        name: Normalized name (PEP 503).
        requires: The `Requires-Dist` lines.
        foreign: Shared objects that this interpreter cannot load.
        files: Their installed paths.
        scripts: The paths among them that are programs.
    """

    path: Path
    name: str
    version: str
    tags: frozenset[Tag]
    requires_python: str
    requires: tuple[str, ...]
    foreign: tuple[tuple[str, machine.Machine], ...]
    files: tuple[str, ...]
    scripts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Selection:
    """The wheels to install.

    Attributes:
        paths: Their paths, the main wheel first.
        unlisted: Names of wheels that are left out.
    """

    paths: tuple[Path, ...]
    unlisted: tuple[str, ...]


def select(spec: PackageSpec, provider: Path) -> Selection:
    """Select wheelPath and dependencyWheels. Without the latter, all of packages/ is selected.

    Raises:
        Failure: NoPackages, MissingWheel or PathOutside.
    """
    packages = provider / "packages"
    present = sorted(packages.glob("*.whl")) if packages.is_dir() else []
    if not present:
        defect = f"has no *.whl file in {PACKAGES}/" if packages.is_dir() else f"has no folder {PACKAGES}/"
        raise Failure(Code.NoPackages, f"the image {defect}")
    main = _inside(provider, spec.wheel_path, "spec.wheelPath")
    if spec.dependency_wheels is None:
        others = [_inside(provider, f"packages/{path.name}", PACKAGES) for path in present]
    else:
        others = [_inside(provider, text, "spec.dependencyWheels") for text in spec.dependency_wheels]
    chosen = tuple(dict.fromkeys([main, *others]))
    unlisted = tuple(path.name for path in present if Path(os.path.realpath(path)) not in chosen)
    return Selection(chosen, unlisted)


def read(path: Path) -> Wheel:
    """Read a wheel's metadata.

    Raises:
        Failure: BadWheel.
        OSError: The file is not readable.
    """
    shown = ascii(path.name)[1:-1]
    if shown != path.name:
        raise Failure(
            Code.BadWheel, f"{shown}: the name of a wheel may contain only ASCII letters, digits and -_.+!"
        )
    try:
        name, version, _, tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise Failure(Code.BadWheel, f"{path.name}: {error}") from None
    with path.open("rb"):
        # first, whether it can be opened at all: any later failure is about its contents
        pass
    try:
        with zipfile.ZipFile(path) as archive:
            if problem := integrity.refused_member(archive):
                raise Failure(Code.BadWheel, f"{path.name}: {problem}")
            about = integrity.metadata(archive, name, version)
            foreign = tuple(_foreign(archive))
            members = archive.namelist()
    except (Failure, MemoryError):
        raise
    except Exception as error:
        # zipfile, zlib, lzma and struct have many different exceptions for a damaged archive.
        raise Failure(Code.BadWheel, f"{path.name} is not a readable wheel: {error}") from None
    requires = tuple(str(line) for line in about.get_all("Requires-Dist", []))
    if len(requires) > MOST_REQUIREMENTS:
        text = f"{path.name}: it has {len(requires)} requirements; at most {MOST_REQUIREMENTS} are allowed"
        raise Failure(Code.BadWheel, text)
    python = str(about.get("Requires-Python", ""))
    files = tuple(map(_placed, members))
    scripts = frozenset(_placed(member) for member in members if _scheme(member)[0] == "scripts")
    return Wheel(path, name, str(version), tags, python, requires, foreign, files, scripts)


def _placed(member: str) -> str:
    """Return the place of a wheel's file below the target folder of pip.

    Source: "Binary distribution format", `.data`.
    """
    scheme, below = _scheme(member)
    return f"{_FOLDERS.get(scheme, '')}{below}"


def _scheme(member: str) -> tuple[str, str]:
    """Return the kind of file of a wheel's member, empty for most, and its path within that kind."""
    folder, _, rest = member.partition("/")
    scheme, _, below = rest.partition("/")
    return (scheme, below) if folder.endswith(".data") else ("", member)


def check(wheels: Sequence[Wheel]) -> Iterator[Failure]:
    """Yield reasons not to install these wheels with this interpreter."""
    first_wheels: dict[str, Wheel] = {}
    for wheel in wheels:
        file = wheel.path.name
        if (twin := first_wheels.setdefault(wheel.name, wheel)) is not wheel:
            yield Failure(
                Code.DuplicateWheel, f"{twin.path.name} and {file} contain the same package, {wheel.name}"
            )
        if problem := shadowing.of_python(wheel.files):
            yield Failure(Code.ModuleShadowed, f"{problem} ({file})")
        if not machine.supports(wheel.tags):
            yield Failure(
                Code.WrongPlatform,
                f"{file} does not fit this container's Python, {machine.describe_interpreter()}",
            )
        for name, built_for in wheel.foreign[:1]:
            reason = f"{name} in {file} is built for {built_for}; this container runs {machine.own_machine()}"
            yield Failure(Code.WrongArchitecture, reason)
        if not _allows_python(wheel.requires_python):
            reason = (
                f"{file} requires Python {wheel.requires_python}; the image has {platform.python_version()}"
            )
            yield Failure(Code.PythonTooOld, reason)


def _inside(provider: Path, text: str, field: str) -> Path:
    below = text.removeprefix(f"{layout.PROVIDER}/")
    if below.startswith("/"):
        raise Failure(Code.PathOutside, f"{field}: {text} is not below {layout.PROVIDER}")
    shown = ascii(text)[1:-1]
    try:
        path = (provider / below).resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        path = (provider / below).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        # The name is too long, or links form a loop (a RuntimeError before Python 3.13).
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Failure(Code.MissingWheel, f"{field}: {shown} points to no file: {why}") from None
    if not path.is_relative_to(provider.resolve()):
        raise Failure(Code.PathOutside, f"{field}: {shown} points to {path}, outside {layout.PROVIDER}")
    if not path.is_file():
        raise Failure(Code.MissingWheel, f"{field}: {shown} does not exist in the image")
    return path


def _foreign(archive: zipfile.ZipFile) -> Iterator[tuple[str, machine.Machine]]:
    for member in archive.infolist():
        if machine.is_shared_object(member.filename):
            with archive.open(member) as file:
                built_for = machine.of_header(file.read(machine.HEADER_BYTES))
            if built_for is not None and not machine.fits(built_for):
                yield member.filename, built_for


def _allows_python(requires_python: str) -> bool:
    try:
        return SpecifierSet(requires_python).contains(platform.python_version(), prereleases=True)
    except ValueError:
        # pip ignores an invalid text, too.
        return True
