"""Wheels: ours and locked ones for an architecture, and their files."""

from __future__ import annotations

import configparser
import email
import fcntl
import hashlib
import io
import os
import re
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Final

import build_wheels

from images.components import ROOT
from images.debian import MACHINES, Failure
from images.tree import File, Tree

CACHE: Final = ROOT / "build" / "images" / "wheels"
PYTHON: Final = "3.11"
GLIBC: Final = range(17, 37)
"""Minor versions of the C library whose wheels Debian 12 runs: it has 2.36, and 2.17 is that of manylinux2014."""

HOME: Final = "opt/kubefoundry"
SITE: Final = f"{HOME}/lib/python{PYTHON}/site-packages"
NOT_INSTALLED: Final = re.compile(r"[^/]+\.data/(scripts|headers)/|[^/]+\.dist-info/RECORD$")
"""Programs of dependencies, which no component starts, and the list of files for an installer."""

PROGRAM: Final = """\
#!/{home}/bin/python
import sys
from {module} import {function}

sys.exit({function}())
"""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel. `sha256` is empty for one of ours, which has no published file."""

    file_name: str
    metadata: Message
    content: bytes
    sha256: str = ""

    @property
    def name(self) -> str:
        return str(self.metadata["Name"])

    @property
    def version(self) -> str:
        return str(self.metadata["Version"])

    @property
    def is_pure(self) -> bool:
        """Check whether every Python and architecture can import the wheel."""
        with zipfile.ZipFile(io.BytesIO(self.content)) as archive:
            [name] = [name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/WHEEL", name)]
            return b"Root-Is-Purelib: true" in archive.read(name)


def read(path: Path, *, ours: bool = False) -> Wheel:
    """Read a wheel."""
    content = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        [name] = [name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
        metadata = email.message_from_bytes(archive.read(name))
    return Wheel(path.name, metadata, content, "" if ours else hashlib.sha256(content).hexdigest())


def build(packages: Iterable[str], variables: Mapping[str, str] = {}) -> dict[str, Wheel]:
    """Build our packages, and return their wheels by folder. Raises CalledProcessError, OSError.

    `variables`: more variables for the environment of the build.
    """
    environment = build_wheels.undisturbed({**os.environ, **variables})
    result = {}
    for package in packages:
        with tempfile.TemporaryDirectory() as work:
            build_wheels.build_packages(Path(work), [package], environment)
            [path] = Path(work).glob("*.whl")
            result[package] = read(path, ours=True)
    return result


def download(
    locks: Sequence[Path], architecture: str, python: str = PYTHON, glibc: Sequence[int] = GLIBC
) -> list[Wheel]:
    """Return the locked wheels for an architecture and a Python. Raises CalledProcessError, OSError."""
    machine = MACHINES[architecture]
    selection = [
        *("--require-hashes", "--no-deps", f"--python-version={python}"),
        *(f"--platform=manylinux_2_{minor}_{machine}" for minor in glibc),
        f"--platform=manylinux2014_{machine}",
        *(f"--requirement={lock}" for lock in locks),
    ]
    cache = CACHE / architecture
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, (cache / ".lock").open("w") as lock:
        # pip writes into the cache in several steps.
        fcntl.flock(lock, fcntl.LOCK_EX)
        build_wheels.download(selection, cache, Path(work), build_wheels.undisturbed(os.environ))
        return [read(path) for path in sorted(Path(work).glob("*.whl"))]


def of_lock(wheels: Iterable[Wheel], lock: Path) -> list[Wheel]:
    """Return the wheels whose hashes a lock has."""
    hashes = set(re.findall(r"sha256:([0-9a-f]{64})", lock.read_text()))
    return [wheel for wheel in wheels if wheel.sha256 in hashes]


def tree(wheel: Wheel) -> Tree:
    """Return the files of a wheel at their places in the image. Raises Failure for an unknown kind of file."""
    result = {}
    with zipfile.ZipFile(io.BytesIO(wheel.content)) as archive:
        for info in archive.infolist():
            if info.is_dir() or NOT_INSTALLED.match(info.filename):
                continue
            path = re.sub(r"^[^/]+\.data/(purelib|platlib)/", "", info.filename)
            if re.match(r"[^/]+\.data/", path) or ".." in Path(path).parts:
                raise Failure(
                    f"the wheel of {wheel.name} has {info.filename}, for which images have no place"
                )
            result[f"{SITE}/{path}"] = File(archive.read(info))
    return result


def program(wheels: Iterable[Wheel], name: str) -> Tree:
    """Return the program of that name, which one of the wheels declares. Raises Failure."""
    declared = dict(entry for wheel in wheels for entry in _programs(wheel))
    if name not in declared:
        raise Failure(f"no package has the program {name}")
    module, _, function = declared[name].partition(":")
    text = PROGRAM.format(home=HOME, module=module, function=function)
    return {f"{HOME}/bin/{name}": File(text.encode(), executable=True)}


def _programs(wheel: Wheel) -> Iterator[tuple[str, str]]:
    parser = configparser.ConfigParser(delimiters="=")
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    with zipfile.ZipFile(io.BytesIO(wheel.content)) as archive:
        for name in archive.namelist():
            if name.endswith(".dist-info/entry_points.txt"):
                parser.read_string(archive.read(name).decode())
    if parser.has_section("console_scripts"):
        yield from parser.items("console_scripts")
