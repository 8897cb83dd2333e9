"""The network of simulated pods, which ends on this machine in the network namespace of a rung."""

from __future__ import annotations

import socket

import pytest


def require(address: str, script: str) -> None:
    """Skip the test unless the address of a pod is local, as in the network namespace that the script makes."""
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            pytest.skip(f"the pods' network does not end here: start these tests by {script}")
