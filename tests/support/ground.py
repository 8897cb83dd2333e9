"""The initial objects of every control plane of the tests, stored as etcd's data: CRDs, namespace and roles.

Writing them takes a third of the CPU time of a control plane's start, and a run of all tests starts a hundred. The
data are beside the control plane's binary, under a hash of all sources.
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
"""The modules that apply the objects. An object contains its field manager, so the hash depends on them."""


@contextmanager
def prepared_plane(
    folder: Path, crds: Sequence[Path], flags: Sequence[str] = (), *, own: bool = False
) -> Iterator[ControlPlane]:
    """Yield a control plane with our CRDs, namespace and roles, and with these CRDs.

    Args:
        folder: The folder of its data.
        crds: Further CRDs.
        flags: Flags of the devcluster.
        own: Whether to use a local control plane even if the environment names a running cluster.
    """
    if os.environ.get(GIVEN) and not own:
        with control_plane(folder) as plane:
            _prepare(plane, crds, folder)
            yield plane
    else:
        with borrowed(_stored_data(tuple(crds)), flags) as plane:
            yield plane


def _prepare(plane: ControlPlane, crds: Sequence[Path], folder: Path) -> None:
    Suite(plane, folder).install_ground()
    for path in crds:
        plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(path))
    names = plane.kubectl("get", "crd", "-o", "jsonpath={.items[*].metadata.name}").stdout
    plane.wait_served(*names.split())


@cache
def _stored_data(crds: tuple[Path, ...]) -> Path:
    """Return the folder of etcd's data. The first process creates it, while others wait."""
    binary = build()
    folder = binary.parent.parent / f"ground-{_digest(binary, crds)}"
    with Path(f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as work:
                plane_folder = Path(work) / "plane"
                with own_control_plane(plane_folder) as plane:
                    _prepare(plane, crds, Path(work) / "suite")
                # The folder gets its name only when it is complete.
                shutil.move(plane_folder / "etcd", folder)
    return folder


def _digest(binary: Path, crds: Sequence[Path]) -> str:
    digest = hashlib.sha256(f"{binary}\n".encode())
    for path in (*OURS, *WRITERS, *crds):
        for file in sorted(path.glob("*.yaml")) if path.is_dir() else (path,):
            digest.update(f"{file.name} {file.stat().st_size}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]
