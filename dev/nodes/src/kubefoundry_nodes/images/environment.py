"""Virtual environments of locked packages, as layers over the root that all images share.

Wheels are downloaded by this environment's own pip, which knows the machine's indexes and certificates, and installed
inside the root without any network. What is made is kept beside the root, under a hash of what it is made of.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kubefoundry_nodes.kubelet import chroot
from kubefoundry_nodes.kubelet.image import Image, shared_root

LOCKS: Final = Path(__file__).parents[5] / "requirements"
PYTHON: Final = "3.13"
GLIBC: Final = range(5, 42)
"""The root's Python, and the minor versions of the C library whose wheels it takes: Debian trixie, glibc 2.41."""


def layer(lock: Path, home: str) -> Path:
    """A layer with an environment at `home` that holds the packages of a lock, and nothing that the lock leaves out.

    Raises CalledProcessError, RuntimeError.
    """
    kept = shared_root().with_name(f"environment-{_fingerprint(lock, home)}")
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".environment-") as work:
            wheels, new = Path(work) / "wheels", Path(work) / "new"
            wheels.mkdir()
            _download(lock, wheels)
            _install(lock, home, wheels, new)
            try:
                new.rename(kept)
            except OSError:
                # another build of the same was first
                if not kept.exists():
                    raise
    return kept


def _fingerprint(lock: Path, home: str) -> str:
    digest = hashlib.sha256(f"{shared_root()} {home} {platform.machine()}\n".encode())
    for path in (lock, Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _download(lock: Path, wheels: Path) -> None:
    machine = platform.machine()
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in GLIBC]
    flags = ["--quiet", "--disable-pip-version-check", "--only-binary=:all:", "--no-deps", "--require-hashes"]
    subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pip",
                "download",
                *flags,
                *platforms,
                f"--platform=manylinux2014_{machine}",
            ),
            *(f"--python-version={PYTHON}", f"--dest={wheels}", f"--requirement={lock}"),
        ],
        check=True,
    )


def _install(lock: Path, home: str, wheels: Path, new: Path) -> None:
    place = new / home.lstrip("/")
    place.mkdir(parents=True)
    shutil.copyfile(lock, wheels / "requirements.txt")
    flags = [
        "--quiet",
        "--no-index",
        "--no-deps",
        "--require-hashes",
        "--no-cache-dir",
        "--find-links=/wheels",
    ]
    packages = ["install", *flags, "--requirement=/wheels/requirements.txt"]
    for command in (
        ["python3", "-m", "venv", "--without-pip", home],
        ["python3", "-m", "pip", f"--python={home}/bin/python3", *packages],
    ):
        step(Image("environment"), command, {home: place, "/wheels": wheels})
    for folder in (new, *place.parents):
        if folder.is_relative_to(new):
            # of any umask: the topmost layer's mode is that of the container's folder
            folder.chmod(0o755)


def step(image: Image, command: Sequence[str], binds: Mapping[str, Path]) -> None:
    """Runs a step of a build in the image. Raises RuntimeError with what it wrote."""
    done = chroot.run(image, command, binds)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
