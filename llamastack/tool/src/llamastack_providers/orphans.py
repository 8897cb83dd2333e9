"""Kills processes that a provider has started and left behind, even in another group or session.

On Linux a process can adopt those whose parent has ended (prctl PR_SET_CHILD_SUBREAPER). They become its
children.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path
from typing import Final

_SUBREAPER: Final = 36
"""PR_SET_CHILD_SUBREAPER of linux/prctl.h."""


def adopt() -> None:
    """Adopt our descendants' orphans from now on. On systems without the call, init does."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def end(group: int, *, besides: int = 0) -> None:
    """Kill a process group (0 for none), and all children except `besides` until no others are left."""
    if group > 1:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    skipped_pids = {besides}
    while pids := _children() - skipped_pids:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except OSError:
                # The process belongs to another user (a set-user-ID program), or has ended already.
                skipped_pids.add(pid)


def _children() -> set[int]:
    pids = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            # The command in brackets may contain anything, including brackets and spaces.
            after = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if int(after[1]) == os.getpid():
                pids.add(int(entry.name))
    return pids
