"""What every control plane of the tests starts with, kept as etcd's data: our CRDs, namespace and roles; more CRDs.

To write it takes a third of the CPU time of a control plane's start, and a run of all tests starts a hundred. It is
kept beside the control plane's binary, under a hash of all that it is made of.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from kubefoundry_local import control_plane as planes
from kubefoundry_local import suite as suites
from kubefoundry_local.control_plane import GIVEN, ROOT, ControlPlane, build, control_plane, own_control_plane
from kubefoundry_local.suite import Suite
from support.reused_planes import borrowed

OURS: Final = (ROOT / "crds", ROOT / "manifests" / "namespace.yaml", ROOT / "manifests" / "users.yaml")

WRITERS: Final = (Path(__file__), Path(suites.__file__), Path(planes.__file__))
"""What writes it: who applies an object, and how, is in the object."""


@contextmanager
def prepared_plane(
    folder: Path, crds: Sequence[Path], flags: Sequence[str] = (), *, own: bool = False
) -> Iterator[ControlPlane]:
    """A control plane with our CRDs, namespace and roles, and these CRDs; `own`, or unless the environment names one,
    one that nobody else uses meanwhile."""
    if os.environ.get(GIVEN) and not own:
        with control_plane(folder) as plane:
            _prepare(plane, crds, folder)
            yield plane
    else:
        with borrowed(_kept(tuple(crds)), flags) as plane:
            yield plane


def _prepare(plane: ControlPlane, crds: Sequence[Path], folder: Path) -> None:
    Suite(plane, folder).install_ground()
    for path in crds:
        plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(path))
    names = plane.kubectl("get", "crd", "-o", "jsonpath={.items[*].metadata.name}").stdout
    plane.wait_served(*names.split())


@cache
def _kept(crds: tuple[Path, ...]) -> Path:
    """The folder of etcd's data; made by whoever comes first, while others wait."""
    binary = build()
    folder = binary.parent.parent / f"ground-{_digest(binary, crds)}"
    with Path(f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as work:
                made = Path(work) / "plane"
                with own_control_plane(made) as plane:
                    _prepare(plane, crds, Path(work) / "suite")
                # whole once it has this name
                shutil.move(made / "etcd", folder)
    return folder


def _digest(binary: Path, crds: Sequence[Path]) -> str:
    digest = hashlib.sha256(f"{binary}\n".encode())
    for path in (*OURS, *WRITERS, *crds):
        for file in sorted(path.glob("*.yaml")) if path.is_dir() else (path,):
            digest.update(f"{file.name} {file.stat().st_size}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]
