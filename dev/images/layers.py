"""The three layers of an image: interpreter, dependencies, our code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from images import debian, wheels
from images.components import ROOT
from images.tree import File, Folder, Link, Tree
from images.wheels import HOME, Wheel

USER: Final = 65532
"""As in the manifests."""

CERTIFICATES: Final = "etc/ssl/certs/ca-certificates.crt"
ACCOUNTS: Final = (
    f"root:x:0:0:root:/root:/sbin/nologin\nkubefoundry:x:{USER}:{USER}:kubefoundry:/:/sbin/nologin\n"
)
GROUPS: Final = f"root:x:0:\nkubefoundry:x:{USER}:\n"
FIXED: Final[Tree] = {
    "etc/passwd": File(ACCOUNTS.encode()),
    "etc/group": File(GROUPS.encode()),
    # The files of /etc first: a pod has its own host name there.
    "etc/nsswitch.conf": File(b"hosts: files dns\n"),
    # OpenSSL's default file of authorities; Debian's package openssl, which has it, is not there.
    "usr/lib/ssl/cert.pem": Link(f"/{CERTIFICATES}"),
    "dev": Folder(),
    "proc": Folder(0o555),
    "sys": Folder(0o555),
    "run": Folder(),
    "tmp": Folder(0o1777),
    "var/run": Link("/run"),
}


def interpreter(packages: Iterable[tuple[debian.Package, Path]]) -> Tree:
    """Return the files of Debian's packages, with the authorities that the package's script would collect."""
    result: dict[str, File | Link | Folder] = {}
    for package, deb in packages:
        result |= debian.tree(deb, package)
    authorities = {
        path: entry.content
        for path, entry in result.items()
        if path.startswith("usr/share/ca-certificates/") and isinstance(entry, File)
    }
    bundle = b"".join(authorities[path].rstrip(b"\n") + b"\n" for path in sorted(authorities))
    kept = {path: entry for path, entry in result.items() if path not in authorities}
    return {**kept, **FIXED, CERTIFICATES: File(bundle)}


def dependencies(installed: Iterable[Wheel]) -> Tree:
    """Return a virtual environment with other people's wheels."""
    result: dict[str, File | Link | Folder] = {
        f"{HOME}/pyvenv.cfg": File(
            b"home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11\n"
        ),
        f"{HOME}/bin/python": Link("/usr/bin/python3.11"),
    }
    for wheel in installed:
        result |= wheels.tree(wheel)
    return result


def own(installed: Iterable[Wheel], program: str) -> Tree:
    """Return our wheels, the program and our licence."""
    installed = list(installed)
    result: dict[str, File | Link | Folder] = {
        f"{HOME}/LICENSE": File((ROOT / "LICENSE").read_bytes()),
        **wheels.program(installed, program),
    }
    for wheel in installed:
        result |= wheels.tree(wheel)
    return result
