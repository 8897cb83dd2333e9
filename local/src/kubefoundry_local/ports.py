"""Free ports of the loopback address, shared among the processes that start suites beside each other."""

from __future__ import annotations

import random
import socket
from typing import Final

from kubefoundry_local.control_plane import CannotRun

_PORTS: Final = iter(random.sample(range(10000, 20000), 10000))
"""Below those that the kernel gives to outgoing connections, which could sit on one before it is listened on."""

_CLAIMS: Final[list[socket.socket]] = []
"""An abstract socket of the port's name for as long as this process lives: between the look at a port and its use
another process that starts a suite would find it free."""


def free_port() -> int:
    """A port of the loopback address on which nobody listens, another one at each call, in whichever process."""
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
