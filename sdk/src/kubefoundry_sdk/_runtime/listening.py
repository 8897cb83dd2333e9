"""Ports that untrusted clients reach: each bounds its connections, so that they cannot exhaust the process's memory.

No HTTP server here counts connections that have not sent a request yet, and one in its TLS handshake costs 65 KiB.
"""

from __future__ import annotations

import gc
import socket
from collections import deque
from contextlib import suppress
from typing import Any, Final

MOST: Final = 512
"""Concurrent connections: 32 MiB. A busy API server opens 60 to a webhook, and a large cluster has three API
servers."""


class Listening(socket.socket):
    """A listening socket that closes the oldest connection if there are too many.

    A client that holds all connections therefore locks nobody out.
    """

    def __init__(self, family: socket.AddressFamily, most: int) -> None:
        super().__init__(family)
        self._most = most
        self._connections: deque[socket.socket] = deque()
        self._ended = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection, and shut down the oldest one if there are too many."""
        connection, address = super().accept()
        if len(self._connections) >= self._most:
            self._connections = deque(item for item in self._connections if item.fileno() >= 0)
        while len(self._connections) >= self._most:
            with suppress(OSError):
                # The server that handles the connection reads its end, and closes it.
                self._connections.popleft().shutdown(socket.SHUT_RDWR)
            self._ended += 1
            if self._ended % self._most == 0:
                # asyncio leaves ended connections in reference cycles. The collector counts objects, not their TLS
                # buffers.
                gc.collect()
        self._connections.append(connection)
        return connection, address


def bind(port: int, *, most: int = MOST) -> Listening:
    """Return a socket on all addresses, IPv4 and IPv6 if available, that refuses connections until it listens.

    Port 0 picks a free one. The socket has at most `most` concurrent connections. Raise OSError if the port is taken,
    OverflowError if it is not a port.
    """
    both = socket.has_dualstack_ipv6()
    listening = Listening(socket.AF_INET6 if both else socket.AF_INET, most)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if both:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.bind(("", port))
    except BaseException:
        listening.close()
        raise
    return listening
