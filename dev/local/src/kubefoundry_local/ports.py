"""Free ports of the loopback address, shared among processes that start suites concurrently."""

from __future__ import annotations

import random
import socket
from typing import Final

from kubefoundry_local.control_plane import CannotRun

_PORTS: Final = iter(random.sample(range(10000, 20000), 10000))
"""Ports below those of outgoing connections, which the kernel may use before a process listens."""

_CLAIMS: Final[list[socket.socket]] = []
"""Abstract sockets named after ports, open until this process ends. They prevent another process from taking a port
between the check and its use."""


def free_port() -> int:
    """Return an unused port of the loopback address. No two calls return the same port, in any process."""
    for port in _PORTS:
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0kubefoundry/port/{port}")
        except OSError:
            claim.close()
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                claim.close()
                continue
        _CLAIMS.append(claim)
        return port
    raise CannotRun("no port is free on 127.0.0.1 between 10000 and 19999")
