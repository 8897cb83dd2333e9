"""Addresses of pods and Services, in a network namespace of the test run.

Every pod has a network namespace and a veth pair. The end of the run has a route to the pod, so no kernel module but
veth is needed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Final

from kubefoundry_nodes.kubelet.process import killed

NODE: Final = "10.244.0.1"
"""The run's address in the network of the pods; tests/pods/run sets it."""

PODS: Final = IPv4Network("10.244.0.0/16")


class CommandFailed(Exception):
    """Raised if a command fails; the message has the command and its output."""


def pod_addresses() -> Iterator[str]:
    """Yield addresses for pods. No address is reused, so a client of an old address reaches nobody."""
    return (str(address) for address in PODS.hosts() if str(address) != NODE)


async def connect(network: Path, address: str) -> None:
    """Create a network namespace at `network`, an empty file, and give it this address."""
    ours = f"v{int(IPv4Address(address)) - int(PODS.network_address)}"
    await _run("unshare", f"--net={network}", "true")
    inside = (
        "link set lo up",
        f"link add eth0 type veth peer name {ours} netns {os.getpid()}",
        f"addr add {address}/32 dev eth0",
        "link set eth0 up",
        f"route add {NODE} dev eth0",
        f"route add default via {NODE} dev eth0",
    )
    await _run("nsenter", f"--net={network}", "ip", "-batch", "-", text="\n".join(inside))
    await _run("ip", "-batch", "-", text=f"link set {ours} up\nroute add {address} dev {ours}")


async def add_local(address: str) -> None:
    """Add an address to the loopback interface."""
    await _run("ip", "addr", "add", f"{address}/32", "dev", "lo")


async def remove_local(address: str) -> None:
    """Remove an address from the loopback interface."""
    await _run("ip", "addr", "del", f"{address}/32", "dev", "lo")


async def _run(*command: str, text: str = "") -> None:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await process.communicate(text.encode())
    except asyncio.CancelledError:
        # The process must end before the pod's files are removed.
        await killed(process)
        raise
    if process.returncode:
        raise CommandFailed(f"{' '.join(command)}: {output.decode().strip()}\n{text}")
