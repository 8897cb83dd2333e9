"""Free ports of the loopback address, shared among processes that start suites concurrently."""

from __future__ import annotations

import random
import socket
from typing import Final

from kubefoundry_local.control_plane import CannotRun

_PORTS: Final = iter(random.sample(range(10000, 20000), 10000))
"""Below those that the kernel gives to outgoing connections, which could take one before we listen on it."""

_CLAIMS: Final[list[socket.socket]] = []
"""An abstract socket named after the port, for as long as this process lives. Otherwise another process that starts a
suite would find the port free between our check and its use."""


def free_port() -> int:
    """A port of the loopback address on which nobody listens; a different one at each call, in any process."""
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
