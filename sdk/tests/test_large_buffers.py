"""The memory of large buffers, such as the body of a CRD, returns to the system."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os
from kubefoundry_sdk._runtime import buffers

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

buffers.map_large_buffers()
# glibc raises its own limit to the size of this buffer once the buffer is freed.
b"x" * 2_000_000
large, small = [], []
for index in range(100):
    large.append(b"x" * 250_000)
    # The heap cannot shrink below a block in use. All of these together fit into no gap that the imports left.
    small.append(b"y" * 60_000)
before = resident()
large.clear()
print(before - resident())
"""


def test_large_buffers_leave_no_gaps_in_the_heap() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)

    assert int(done.stdout) > 20_000_000
