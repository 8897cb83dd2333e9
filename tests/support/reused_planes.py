"""Control planes that one test after another uses: each begins with exactly the objects of the ground.

A start takes 2 s of CPU time and 5 s until it is ready. So a control plane is kept when its test ends: whatever etcd
has more, less or otherwise than it had at first is put back there, as a restored backup would do it, and the API
server learns of that by its watches. One that cannot be brought back is stopped.
"""

from __future__ import annotations

import atexit
import http.client
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final
from urllib.error import HTTPError

from kubefoundry_local.control_plane import ControlPlane, own_control_plane
from support.etcd import Etcd

IDLE: Final = 2
"""How many a process keeps: each takes 1 % of a core and 300 MB."""

ROUNDS: Final = 20
"""How often it is looked again whether the API server has written something meanwhile."""

SEEN: Final = 10.0
"""Seconds within which the API server has seen a change in etcd."""

NAMESPACES: Final = b"/registry/namespaces/"

ITS_OWN: Final = (
    b"/registry/leases/kube-system/apiserver-",
    b"/registry/masterleases/",
    b"/registry/ranges/",
)
"""Keys that the API server itself renews."""


@dataclass
class _Kept:
    """A control plane with what it began with. values: revision and value of each key."""

    ground: tuple[Path, tuple[str, ...]]
    plane: ControlPlane
    stack: ExitStack
    etcd: Etcd
    values: dict[bytes, tuple[int, bytes]]

    def put_back(self) -> bool:
        """Whether it is as it was at first. Raises OSError or HTTPException if it does not answer."""
        process = self.plane.process
        if process is None or process.poll() is not None:
            return False
        self.plane.answer("/readyz", seconds=SEEN)
        for _ in range(ROUNDS):
            now = self.etcd.revisions()
            more = [key for key in now if key not in self.values and not key.startswith(ITS_OWN)]
            less = {key: value for key, (_, value) in self.values.items() if key not in now}
            other: dict[bytes, bytes] = {}
            for key in now.keys() & self.values.keys():
                revision, value = self.values[key]
                if now[key] != revision and not key.startswith(ITS_OWN):
                    if self.etcd.value(key) == value:
                        self.values[key] = (now[key], value)
                    else:
                        other[key] = value
            if not (more or less or other):
                self._forget_requests()
                return True
            # Controllers fill a namespace again as long as the API server lets them.
            namespaces = [key for key in more if key.startswith(NAMESPACES)]
            self.etcd.write({}, namespaces)
            for key in namespaces[-1:]:  # it learns of them in this order
                self._wait_refused(key.removeprefix(NAMESPACES).decode())
            self.etcd.write(less | other, [key for key in more if key not in namespaces])
        return False

    def _wait_refused(self, namespace: str) -> None:
        """Until the API server has seen that there is no such namespace. Raises OSError if that takes too long."""
        ends = time.monotonic() + SEEN
        path = f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All"
        while time.monotonic() < ends:
            try:
                self.plane.answer(path, {"metadata": {"name": "test"}}, SEEN)
            except HTTPError as error:
                if error.code == 404:
                    return
        raise OSError(f"{namespace} is still accepted after {SEEN:.0f} s")

    def _forget_requests(self) -> None:
        """The next test counts its own."""
        assert self.plane.audit_log is not None
        os.truncate(self.plane.audit_log, 0)


_idle: list[_Kept] = []


@contextmanager
def borrowed(data: Path, flags: Sequence[str]) -> Iterator[ControlPlane]:
    """One that began with etcd's data of that folder and was started with these flags."""
    ground = (data, tuple(flags))
    kept = next((one for one in _idle if one.ground == ground), None)
    if kept:
        _idle.remove(kept)
    else:
        kept = _started(ground)
    process = kept.plane.process
    try:
        yield kept.plane
    except BaseException:
        kept.stack.close()
        raise
    if kept.plane.process is process and _put_back(kept):
        _idle.append(kept)
    else:
        kept.stack.close()
    if len(_idle) > IDLE:
        _idle.pop(0).stack.close()


def _put_back(kept: _Kept) -> bool:
    try:
        return kept.put_back()
    except (OSError, http.client.HTTPException):
        return False  # a test has stopped or broken it


def _started(ground: tuple[Path, tuple[str, ...]]) -> _Kept:
    data, flags = ground
    stack = ExitStack()
    folder = stack.enter_context(tempfile.TemporaryDirectory(dir=_folder()))
    plane = stack.enter_context(own_control_plane(Path(folder) / "plane", flags, data))
    etcd = Etcd(plane.kubeconfig.parent)
    return _Kept(ground, plane, stack, etcd, etcd.values())


@cache
def _folder() -> Path:
    """Of all of this process; what is left is stopped and removed when it ends."""
    folder = tempfile.TemporaryDirectory(prefix="kubefoundry-planes-")
    atexit.register(folder.cleanup)
    atexit.register(_stop_idle)
    return Path(folder.name)


def _stop_idle() -> None:
    while _idle:
        _idle.pop().stack.close()
