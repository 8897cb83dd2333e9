"""Reuse control planes for several tests. Each test starts with exactly the initial objects (`support.ground`).

A start takes 2 s of CPU time and 5 s until it is ready. So a control plane is reused after a test. All additional,
missing and changed keys of etcd are reset, as by a restored backup, and the API server gets the changes by its
watches. A control plane that cannot be reset is stopped.
"""

from __future__ import annotations

import atexit
import http.client
import logging
import os
import shutil
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
"""Idle control planes of a process, at most. Each takes 1 % of a core and 300 MB."""

ROUNDS: Final = 20
"""Attempts to reset etcd. The API server may write during an attempt."""

DEADLINE: Final = 180.0
"""Seconds until the API server has received a change of etcd, at most."""

NAMESPACES: Final = b"/registry/namespaces/"

ITS_OWN: Final = (
    b"/registry/leases/kube-system/apiserver-",
    b"/registry/masterleases/",
    b"/registry/ranges/",
)
"""Prefixes of keys that the API server itself renews."""


@dataclass
class _Reusable:
    """A control plane with its initial state. `values` has revision and value of each key."""

    ground: tuple[Path, tuple[str, ...]]
    plane: ControlPlane
    stack: ExitStack
    etcd: Etcd
    values: dict[bytes, tuple[int, bytes]]

    def put_back(self) -> str:
        """Reset etcd, and return why this is impossible, or "". Raise OSError or HTTPException without an answer."""
        process = self.plane.process
        if process is None or process.poll() is not None:
            return "the devcluster has stopped"
        self.plane.answer("/readyz", seconds=DEADLINE)
        if "--all-controllers" in self.ground[1] and self._is_deleting_namespace():
            return "a namespace is being deleted"
        for _ in range(ROUNDS):
            revisions = self.etcd.revisions()
            added = [key for key in revisions if key not in self.values and not key.startswith(ITS_OWN)]
            removed = {key: value for key, (_, value) in self.values.items() if key not in revisions}
            changed: dict[bytes, bytes] = {}
            for key in revisions.keys() & self.values.keys():
                revision, value = self.values[key]
                if revisions[key] != revision and not key.startswith(ITS_OWN):
                    if self.etcd.value(key) == value:
                        self.values[key] = (revisions[key], value)
                    else:
                        changed[key] = value
            if not (added or removed or changed):
                self._forget()
                return ""
            # Controllers create objects in a namespace again as long as the API server accepts them.
            namespaces = [key for key in added if key.startswith(NAMESPACES)]
            self.etcd.write({}, namespaces)
            for key in namespaces[-1:]:  # the last one is enough: the watch keeps the order
                self._wait_refused(key.removeprefix(NAMESPACES).decode())
            self.etcd.write(removed | changed, [key for key in added if key not in namespaces])
        return f"objects differ after {ROUNDS} attempts: {[*added, *removed, *changed]}"

    def _is_deleting_namespace(self) -> bool:
        """Check whether the namespace controller may still empty a namespace, also one that is created again."""
        revisions = self.etcd.revisions()
        if any(key.startswith(NAMESPACES) and key not in revisions for key in self.values):
            return True
        return any(
            b"Terminating" in (self.etcd.value(key) or b"") for key in revisions if key.startswith(NAMESPACES)
        )

    def _wait_refused(self, namespace: str) -> None:
        """Wait until the API server refuses objects of a deleted namespace. Raise OSError if that takes too long."""
        ends = time.monotonic() + DEADLINE
        path = f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All"
        while time.monotonic() < ends:
            try:
                self.plane.answer(path, {"metadata": {"name": "test"}}, DEADLINE)
            except HTTPError as error:
                if error.code == 404:
                    return
        raise OSError(f"{namespace} is still accepted after {DEADLINE:.0f} s")

    def _forget(self) -> None:
        """Empty the audit log, because the next test counts its own requests, and what kubectl has discovered."""
        assert self.plane.audit_log is not None
        os.truncate(self.plane.audit_log, 0)
        shutil.rmtree(self.plane.discovered, ignore_errors=True)


_idle: list[_Reusable] = []


@contextmanager
def borrowed(data: Path, flags: Sequence[str]) -> Iterator[ControlPlane]:
    """Yield an idle or a new control plane with these flags and with etcd's data of the folder."""
    ground = (data, tuple(flags))
    reusable = next((idle for idle in _idle if idle.ground == ground), None)
    if reusable:
        _idle.remove(reusable)
    else:
        reusable = _started(ground)
    process = reusable.plane.process
    try:
        yield reusable.plane
    except BaseException:
        # A failed test may have left it in any state.
        reusable.stack.close()
        raise
    # A test may have replaced the devcluster and its data (`restore_etcd`), which `values` do not describe.
    if reusable.plane.process is process and _put_back(reusable):
        _idle.append(reusable)
    else:
        reusable.stack.close()
    if len(_idle) > IDLE:
        _idle.pop(0).stack.close()


def _put_back(reusable: _Reusable) -> bool:
    try:
        problem = reusable.put_back()
    except (OSError, http.client.HTTPException) as error:
        problem = repr(error)  # a test has stopped or broken it
    if problem:
        logging.getLogger(__name__).warning("this control plane cannot be reset: %s", problem)
    return not problem


def _started(ground: tuple[Path, tuple[str, ...]]) -> _Reusable:
    data, flags = ground
    stack = ExitStack()
    folder = stack.enter_context(tempfile.TemporaryDirectory(dir=_folder()))
    plane = stack.enter_context(own_control_plane(Path(folder) / "plane", flags, data))
    etcd = Etcd(plane.kubeconfig.parent)
    return _Reusable(ground, plane, stack, etcd, etcd.values())


@cache
def _folder() -> Path:
    """Create the folder of all control planes of this process. They are stopped and removed when it ends."""
    folder = tempfile.TemporaryDirectory(prefix="kubefoundry-planes-")
    atexit.register(folder.cleanup)
    atexit.register(_stop_idle)
    return Path(folder.name)


def _stop_idle() -> None:
    while _idle:
        _idle.pop().stack.close()
