"""Kills processes that another one has started and left behind, even in another group or session.

On Linux a process can adopt those whose parent has ended (prctl PR_SET_CHILD_SUBREAPER); they become its children.
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
    """From now on we adopt our descendants' orphans. On systems without the call, init does."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def end(group: int, *, besides: int = 0) -> None:
    """Kills a process group (0 for none), and all children but one until no others are left."""
    if group > 1:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    refused = {besides}
    while others := _children() - refused:
        for pid in others:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except OSError:
                # of another user (a set-user-ID program), or gone already
                refused.add(pid)


def _children() -> set[int]:
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            # the command in brackets may contain anything, including brackets and spaces
            after = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if int(after[1]) == os.getpid():
                found.add(int(entry.name))
    return found
