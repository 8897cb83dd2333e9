"""Resident memory of our processes (f): after the imports, at rest, and with many deployments."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks import processes
from benchmarks.figures import Figure, Section
from benchmarks.rig import Rig


def imported(rig: Rig) -> dict[str, float]:
    """Return the megabytes of an interpreter that has only imported a component's main module, by component."""
    megabytes = {}
    for name, component in rig.suite.components.items():
        in_kopf = "-m" in component.command
        module = component.command[-1] if in_kopf else _main_module(Path(component.command[0]))
        # A script without imports of its own, which would count, too.
        script = (
            f"import {module}\n"
            "status = open('/proc/self/status').read()\n"
            "print(status.split('VmRSS:')[1].split()[0])"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        megabytes[name] = int(done.stdout) * 1024 / 1e6
    return megabytes


def _main_module(script: Path) -> str:
    """Return the module from which the console script imports `main`."""
    for line in script.read_text().splitlines():
        if line.startswith("from ") and " import " in line:
            return line.split()[1]
    raise ValueError(f"{script} is no console script as pip writes them")


def resident(rig: Rig) -> dict[str, float]:
    """Return the present megabytes of each of our processes."""
    return {name: processes.resident_megabytes(pid) for name, pid in processes.ours(rig).items()}


def section(
    imports: Mapping[str, float], idle: Mapping[str, float], full: Mapping[str, float], n: int
) -> Section:
    """Return section f. `full` has the megabytes with n deployments; it is empty without the burst."""
    figures = []
    for name in imports:
        figures += [
            Figure(f"{name}: bare imports", imports[name], "MB"),
            Figure(f"{name}: idle", idle[name], "MB", aim=imports[name] + 15),
        ]
        if full:
            # The aim is for 1,000 deployments.
            aim = idle[name] + 8 if n <= 1000 else None
            figures.append(Figure(f"{name}: with {n:,}", full[name], "MB", aim=aim))
    return Section(
        "f",
        "Resident memory",
        "VmRSS in 10⁶ bytes: of an interpreter that imported the component's main module and nothing else, of the "
        "process after its start, and of the same process after section e with all of them Running.",
        figures,
    )
