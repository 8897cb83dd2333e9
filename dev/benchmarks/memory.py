"""Resident memory of our processes (f): what importing costs, at rest, and with many deployments."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks import processes
from benchmarks.figures import Figure, Section
from benchmarks.rig import Rig

_PRINT = "from benchmarks.processes import resident_megabytes as r; print(r('self'))"


def imported(rig: Rig) -> dict[str, float]:
    """Megabytes of a bare interpreter that has imported a component's main module, by component."""
    found = {}
    for name, component in rig.suite.components.items():
        module = _main_module(Path(component.command[0]))
        read = (
            f"import {module}\n"
            "status = open('/proc/self/status').read()\n"
            "print(status.split('VmRSS:')[1].split()[0])"
        )
        done = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, check=True)
        found[name] = int(done.stdout) * 1024 / 1e6
    return found


def _main_module(script: Path) -> str:
    """The module that the console script imports `main` from."""
    for line in script.read_text().splitlines():
        if line.startswith("from ") and " import " in line:
            return line.split()[1]
    raise ValueError(f"{script} is no console script as pip writes them")


def resident(rig: Rig) -> dict[str, float]:
    """Megabytes of each of our processes now."""
    return {name: processes.resident_megabytes(pid) for name, pid in processes.ours(rig).items()}


def section(
    imports: Mapping[str, float], idle: Mapping[str, float], full: Mapping[str, float], n: int
) -> Section:
    """Section f. `full`: with n deployments, empty where the burst was left out."""
    figures = []
    for name in imports:
        figures += [
            Figure(f"{name}: bare imports", imports[name], "MB"),
            Figure(f"{name}: idle", idle[name], "MB", aim=imports[name] + 15, peer="46–49"),
        ]
        if full:
            # the aim is for 1,000
            aim = idle[name] + 8 if n <= 1000 else None
            figures.append(Figure(f"{name}: with {n:,}", full[name], "MB", aim=aim, peer="65–83"))
    return Section(
        "f",
        "Resident memory",
        "VmRSS in 10⁶ bytes: of an interpreter that imported the component's main module and nothing else, of the "
        "process after its start, and of the same process after section e with all of them Running.",
        figures,
    )
