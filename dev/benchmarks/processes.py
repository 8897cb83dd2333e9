"""CPU time and memory of processes, from /proc."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from benchmarks.rig import Rig

TICKS: Final = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return user and system time since the start of the process."""
    # The command's name is in parentheses and may contain spaces.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_megabytes(pid: int | str) -> float:
    """Return the resident set size in units of 10^6 bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ValueError(f"process {pid} has no resident memory")


def ours(rig: Rig) -> dict[str, int]:
    """Return the process id of each of our running components."""
    return {
        name: component.process.pid
        for name, component in rig.suite.components.items()
        if component.process is not None
    }


def control_plane(rig: Rig) -> dict[str, int]:
    """Return the process id of each program of the control plane (`kube-apiserver`, `etcd` …)."""
    process = rig.suite.plane.process
    if process is None:
        return {}
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    pids = {}
    for child in Path(f"/proc/{process.pid}/task").glob("*/children") if children.exists() else ():
        for pid in child.read_text().split():
            command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]
            pids[Path(command).name] = int(pid)
    return pids
