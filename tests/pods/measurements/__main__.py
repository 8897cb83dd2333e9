"""`tests/pods/measure TABLE`: prints measurements of services of providers on a real llama-stack server.

latency: calls whose provider works in the server, in sidecars and in pods of its own. start: time and memory by the
number of sidecars. injections: repeated starts with a sidecar. The figures depend on the load of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from kubefoundry_local.control_plane import CannotRun
from pods.measurements import injections, latency, start
from pods.measurements.rig import running

COUNTS: Final = (0, 1, 5, 10)


def main() -> int:
    """Return the exit code: 1 if a measurement was not possible."""
    parser = argparse.ArgumentParser(prog="tests/pods/measure", description=__doc__)
    tables = parser.add_subparsers(dest="table", required=True)
    calls = tables.add_parser("latency", help="latency by the place of the provider's work")
    calls.add_argument("--calls", type=int, default=1000, help="calls of each provider (1000)")
    sidecars = tables.add_parser("start", help="start time and memory by number of sidecars")
    sidecars.add_argument(
        "--sidecars", type=int, nargs="+", default=COUNTS, help="numbers of sidecars (0 1 5 10)"
    )
    starts = tables.add_parser("injections", help="repeated starts of a server with a sidecar")
    starts.add_argument("--count", type=int, default=100, help="starts (100)")
    options = parser.parse_args()
    load, processors = os.getloadavg()[0], os.cpu_count()
    print(f"{processors} processors, load average at the beginning {load:.1f}", flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="kubefoundry-measure-") as work, running(Path(work)) as rig:
            match options.table:
                case "latency":
                    asyncio.run(latency.measure(rig, options.calls))
                case "start":
                    asyncio.run(start.measure(rig, options.sidecars))
                case _:
                    asyncio.run(injections.measure(rig, options.count))
    except (CannotRun, AssertionError, OSError) as problem:
        print(f"measure: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
