"""Child processes that do not outlive this one, however it ends (on Linux; elsewhere they may)."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

PR_SET_PDEATHSIG: Final = 1
"""prctl(2): the signal that a process gets when the thread that created it ends."""


def ends_with_us() -> Callable[[], None] | None:
    """The `preexec_fn` of such a child; for the main thread, because its end is the process's."""
    if sys.platform != "linux":
        return None
    # Looked up here: between fork and exec only code that is already loaded is safe to use.
    prctl, us = ctypes.CDLL(None).prctl, os.getpid()

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != us:
            os.kill(os.getpid(), signal.SIGTERM)

    return ask
