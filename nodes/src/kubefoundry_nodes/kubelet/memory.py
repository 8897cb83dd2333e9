"""Memory limits: kills a container that uses more, as the kernel's OOM killer does.

Measures the processes' own memory instead of a control group's, which not every machine allows: file pages do not
count, and an excess is noticed a moment later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Final

from kubefoundry_nodes.kubelet.process import Process

EVERY: Final = 0.2
"""Seconds between two measurements."""

OWN: Final = ("RssAnon:", "RssShmem:")
"""Lines of /proc/PID/status, in kB."""


async def keep(running: Process, limit: Fraction) -> None:
    """Kills the container when its processes have more bytes than this; to be cancelled when it ends."""
    namespace = _namespace(Path(f"/proc/{running.pid}"))
    while sum(map(used, _processes(namespace))) <= limit:  # noqa: ASYNC110 (the kernel tells nobody)
        await asyncio.sleep(EVERY)
    running.kill_for_memory()


def _processes(namespace: str) -> Iterator[Path]:
    return (process for process in Path("/proc").glob("[0-9]*") if _namespace(process) == namespace)


def used(process: Path) -> int:
    """Bytes of a process, a folder of /proc; 0 for one that has ended."""
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(OWN))


def _namespace(process: Path) -> str:
    """Of its process numbers: a container has one of its own. Empty for a process that has ended."""
    try:
        return str((process / "ns" / "pid").readlink())
    except OSError:
        return ""
