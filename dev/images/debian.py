"""Debian packages of the interpreter layer: the lock, downloads by apt, and their files."""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final

from images.components import LOCKS, ROOT
from images.tree import File, Link, Tree

NAMES: Final = LOCKS / "debian.in"
LOCK: Final = LOCKS / "debian.txt"
CACHE: Final = ROOT / "build" / "images" / "debian"

MACHINES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
"""The kernel's names of the architectures, by Debian's."""

ARCHITECTURES: Final = tuple(MACHINES)
SUITE: Final = "bookworm"
KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
HELPER: Final = "/usr/lib/apt/apt-helper"
"""Downloads a file as apt does, with apt's proxies and certificates."""

AS_CALLER: Final = ("-o", "APT::Sandbox::User=root")
"""apt as root downloads as another user, who may not enter folders of ours."""

SECURITY: Final = "pool/updates/"
"""Start of the paths in the security archive."""

LEFT_OUT: Final = (
    *("usr/share/man/", "usr/share/lintian/", "usr/share/locale/", "usr/share/info/", "usr/share/bug/"),
    *("usr/share/doc-base/", "usr/share/binfmts/", "usr/share/python3/", "usr/share/base-files/"),
    *("usr/share/gcc/", "usr/share/gdb/", "usr/sbin/", "etc/update-motd.d/", "usr/share/applications/"),
    *("usr/lib/python3.11/lib2to3/", "usr/lib/python3.11/pydoc_data/", "usr/lib/python3.11/test/"),
    *("usr/lib/python3.11/turtle.py", "usr/lib/python3.11/lib-dynload/_test"),
    *("usr/lib/python3.11/unittest/", "usr/lib/python3.11/sqlite3/"),
    *(f"usr/lib/python3.11/lib-dynload/_{name}" for name in ("codecs_", "sqlite3")),
    "lib/x86_64-linux-gnu/libmvec.so",
)
"""Documentation, programs for administrators of a machine, tools for authors of Python programs, SQLite, encodings of
East Asia, and the C library's functions for vectors, which no program in the images is linked with."""


class Failure(Exception):
    """Raised if a build cannot go on. The message is for its user."""


@dataclass(frozen=True, slots=True)
class Package:
    """A locked package. `path` is its path in the archive, `sha256` the digest of the file."""

    architecture: str
    name: str
    version: str
    sha256: str
    path: str


def locked(architecture: str, lock: Path = LOCK) -> list[Package]:
    """Read the packages of an architecture from a lock."""
    lines = [line.split() for line in lock.read_text().splitlines() if not line.startswith("#")]
    return [Package(*fields) for fields in lines if fields[0] == architecture]


def fetch(
    packages: Sequence[Package], cache: Path = CACHE, archives: Mapping[str, str] | None = None
) -> dict[Package, Path]:
    """Return a verified file of each package. Raises Failure.

    Args:
        packages: The packages.
        cache: The folder for the files.
        archives: Addresses of archives by label; by default those of this machine.
    """
    cache.mkdir(parents=True, exist_ok=True)
    files = {package: cache / f"{package.sha256}.deb" for package in packages}
    missing = [package for package, path in files.items() if not _is_complete(path, package)]
    if not missing:
        return files
    archives = archives or _mirrors()
    for package in missing:
        label = "Debian-Security" if package.path.startswith(SECURITY) else "Debian"
        download(package, archives[label], files[package])
    return files


def _is_complete(path: Path, package: Package) -> bool:
    """Check whether a cached file is the locked package."""
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == package.sha256


def download(package: Package, archive: str, target: Path) -> None:
    """Download a package from an archive, and verify it. Raises Failure."""
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        new = Path(work) / "package.deb"
        command = [HELPER, *AS_CALLER, "download-file", f"{archive.rstrip('/')}/{package.path}", str(new)]
        done = subprocess.run([*command, f"SHA256:{package.sha256}"], capture_output=True, text=True)
        if done.returncode or not _is_complete(new, package):
            why = " ".join(done.stderr.split()) or "it has another content than the locked one"
            # The mirror has no such file: Debian keeps only the newest version.
            is_gone = "not found" in why.lower()
            remedy = ". Debian may have replaced this version: run `make lock-debian`" if is_gone else ""
            raise Failure(
                f"cannot download {package.name} {package.version} ({package.architecture}): {why}{remedy}"
            )
        new.rename(target)


def tree(deb: Path, package: Package) -> Tree:
    """Return the files of a package that an image needs, with the entry that security scanners read."""
    data = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(deb)], check=True, capture_output=True).stdout
    control = subprocess.run(["dpkg-deb", "--field", str(deb)], check=True, capture_output=True).stdout
    result: dict[str, File | Link] = {f"var/lib/dpkg/status.d/{package.name}": File(control)}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            path = member.name.removeprefix("./")
            if not _needed(path):
                continue
            if member.issym():
                result[path] = Link(member.linkname)
            elif member.isfile():
                content = tar.extractfile(member)
                assert content is not None
                result[path] = File(content.read(), bool(member.mode & 0o100))
            elif not member.isdir():
                raise Failure(f"{package.name} has {path}, which is neither file, folder nor link")
    return result


def write_lock(lock: Path = LOCK, architectures: Sequence[str] = ARCHITECTURES) -> None:
    """Write the newest version of each package, from the signed indexes of Debian. Raises Failure."""
    names = [line for line in NAMES.read_text().splitlines() if not line.startswith("#")]
    lines = ["# Written by `make lock-debian` from debian.in: architecture, package, version, SHA-256, path"]
    mirrors = _mirrors()
    for architecture in architectures:
        with tempfile.TemporaryDirectory() as work:
            packages = {
                package.name: package for package in _newest(Path(work), architecture, names, mirrors)
            }
        if missing := [name for name in names if name not in packages]:
            raise Failure(f"Debian {SUITE} has no {', '.join(missing)} for {architecture}")
        lines += [" ".join(astuple(packages[name])) for name in names]
    lock.write_text("\n".join(lines) + "\n")


def _needed(path: str) -> bool:
    if path.startswith("usr/share/doc/"):
        # links between folders of documents lead to licences
        return path.count("/") == 3 or (path.endswith("/copyright") and path.count("/") == 4)
    return not path.startswith(LEFT_OUT) and "/gconv/" not in path


def _newest(
    work: Path, architecture: str, names: Sequence[str], mirrors: dict[str, str]
) -> Iterator[Package]:
    """Yield the newest version of each package, with lists of indexes that this machine's apt does not see."""
    sources = [
        f"deb [signed-by={KEYRING}] {mirrors['Debian']} {SUITE} main",
        f"deb [signed-by={KEYRING}] {mirrors['Debian']} {SUITE}-updates main",
        f"deb [signed-by={KEYRING}] {mirrors['Debian-Security']} {SUITE}-security main",
    ]
    (work / "sources.list").write_text("\n".join(sources) + "\n")
    (work / "status").touch()
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (work / folder).mkdir(parents=True)
    settings = {
        "Dir::State": work / "state",
        "Dir::Cache": work / "cache",
        "Dir::State::status": work / "status",
        "Dir::Etc::SourceList": work / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
    }
    options = [*AS_CALLER, *(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))]
    done = subprocess.run(["apt-get", *options, "update"], capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"cannot read Debian's indexes: {done.stderr.strip()}")
    shown = subprocess.run(
        ["apt-cache", *options, "show", "--no-all-versions", *names], capture_output=True, text=True
    )
    for record in shown.stdout.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in record.splitlines() if ": " in line and line[0] != " ")
        if "Filename" in fields:
            yield Package(
                architecture,
                fields["Package"],
                fields["Version"],
                fields["SHA256"],
                fields["Filename"],
            )


def _mirrors() -> dict[str, str]:
    """Return Debian's archives by label: those of this machine's apt, else debootstrap's. Raises Failure."""
    # The label comes last, because labels such as "Debian Backports" have spaces.
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL)", "Created-By: Packages"]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    labels = {label: address for address, _, label in (line.partition(" ") for line in lines)}
    mirrors: dict[str, str] = {
        label: labels[label]
        for label in ("Debian", "Debian-Security")
        # apt-helper downloads below no list of mirrors
        if label in labels and not labels[label].startswith("mirror")
    }
    if "Debian" not in mirrors:
        mirrors["Debian"] = _default_mirror()
    # On Debian's mirrors, both archives are beside one another.
    return {"Debian-Security": f"{mirrors['Debian'].rstrip('/')}-security", **mirrors}


def _default_mirror() -> str:
    """Return the mirror that Debian's program debootstrap uses. Raises Failure."""
    with tempfile.TemporaryDirectory() as work:
        command = ["apt-get", *AS_CALLER, "download", "debootstrap"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True)
        for package in Path(work).glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", str(package), work], check=True)
        script = Path(work, "usr", "sbin", "debootstrap")
        found = re.search(r'^DEF_MIRROR="(\S+)"$', script.read_text(), re.M) if script.exists() else None
    if found is None:
        raise Failure(
            "building images needs Debian's archive: apt on this machine has neither a source with the label Debian "
            f"nor the package debootstrap ({done.stderr.strip()}); run `apt-get update` as root, or add one of them"
        )
    return found[1]
