"""Memory limits: kill a container that exceeds its limit, as the kernel's OOM killer does.

The module measures the memory of processes instead of a control group, which not every machine allows. File pages do
not count, and an excess is detected with a small delay.
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
    """Kill the container if its processes use more bytes than the limit. The caller cancels this at its end."""
    namespace = _namespace(Path(f"/proc/{running.pid}"))
    while sum(map(used, _processes(namespace))) <= limit:  # noqa: ASYNC110 (the kernel tells nobody)
        await asyncio.sleep(EVERY)
    running.kill_for_memory()


def _processes(namespace: str) -> Iterator[Path]:
    return (process for process in Path("/proc").glob("[0-9]*") if _namespace(process) == namespace)


def used(process: Path) -> int:
    """Return the bytes that a process uses, by its folder in /proc; 0 if it has ended."""
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(OWN))


def _namespace(process: Path) -> str:
    """Return the PID namespace, which is specific to a container; empty if the process has ended."""
    try:
        return str((process / "ns" / "pid").readlink())
    except OSError:
        return ""
