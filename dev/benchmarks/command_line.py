"""`python -m benchmarks.command_line`: measure commands of the command line against a Python that does nothing.

Each command runs in a process of its own, one after another, in rounds. The medians are written to docs/cli.md.
"""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml

from benchmarks.rig import GPU, deployment
from kubefoundry_local.control_plane import ROOT, control_plane
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client

ROUNDS: Final = 15
MODELS: Final = 100
NOTHING: Final = "python -c pass"
PLACE: Final = re.compile(
    r"(?s)(<!-- figures of benchmarks\.command_line -->\n).*?(\n<!-- end of the figures -->)"
)


def main() -> int:
    """Measure, print the table, and write it to docs/cli.md."""
    with tempfile.TemporaryDirectory() as folder, control_plane(Path(folder) / "plane") as plane:
        Suite(plane, Path(folder) / "suite").install_ground()
        plane.kubectl("apply", "--server-side", "-f", str(ROOT / "dev/simulators/crds/kuberay.yaml"))
        plane.wait_served("rayservices.ray.io")
        asyncio.run(_create_models(str(plane.kubeconfig)))
        file = Path(folder) / "m.yaml"
        file.write_text(yaml.safe_dump(deployment("m", "default", GPU)))
        where = ["--kubeconfig", str(plane.kubeconfig)]
        text = _table(
            {
                NOTHING: [sys.executable, "-c", "pass"],
                "--help": _command("--help"),
                "explain -f FILE --offline": _command("explain", "-f", str(file), "--offline"),
                "plan -f FILE --provider kuberay": _command(
                    "plan", "-f", str(file), "--provider", "kuberay", *where
                ),
                f"status ({MODELS} models)": _command("status", *where),
            }
        )
    print(text)
    document = ROOT / "docs" / "cli.md"
    document.write_text(PLACE.sub(lambda match: match[1] + text + match[2], document.read_text()))
    return 0


async def _create_models(kubeconfig: str) -> None:
    """Create the models that `status` lists."""
    async with Client(credentials.from_kubeconfig(kubeconfig), user_agent="benchmarks") as client:
        for number in range(MODELS):
            body = deployment(f"m{number}", "default", GPU)
            await client.create(MODEL_DEPLOYMENTS, body, manager="benchmarks")


def _command(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("kubefoundry")), *arguments]


def _table(commands: dict[str, Sequence[str]]) -> str:
    """Return the medians of CPU and wall time. The commands take turns, so that a busy moment affects all of them."""
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            samples[name].append(_run(command))
    nothing = statistics.median(cpu for cpu, _ in samples[NOTHING])
    rows = ["| command | CPU, ms | times `python -c pass` | wall, ms |", "|---|---|---|---|"]
    for name, runs in samples.items():
        cpu, wall = (statistics.median(part) for part in zip(*runs, strict=True))
        rows.append(f"| `{name}` | {1000 * cpu:.0f} | {cpu / nothing:.1f} | {1000 * wall:.0f} |")
    return "\n".join(rows)


def _run(command: Sequence[str]) -> tuple[float, float]:
    """Return CPU and wall time of a process in seconds. Raise CalledProcessError if it fails."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_utime + used.ru_stime, time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
