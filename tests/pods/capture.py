"""Counts the packets of pods: each connection that a pod opens beyond its own network, and each datagram."""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

ETH_P_ALL: Final = 3
SO_ATTACH_FILTER: Final = 26
SO_RCVBUFFORCE: Final = 33
SOL_PACKET: Final = 263
PACKET_STATISTICS: Final = 6
OUTGOING: Final = socket.PACKET_OUTGOING
"""Numbers of linux/if_ether.h, asm-generic/socket.h, linux/socket.h and linux/if_packet.h."""

LOOPBACK: Final = "lo"
BYTES: Final = 128
"""Bytes of each packet that are kept: the headers."""
BUFFER: Final = 32 << 20
"""Bytes of the kernel's buffer. The packets are read at the end."""
SYN: Final = 0x02
ACK: Final = 0x10


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet that a pod sent.

    Attributes:
        source: The sender's address.
        target: The receiver's address, and its port for TCP and UDP.
        protocol: The name of the protocol.
        opens: Whether it opens a connection, or belongs to none.
    """

    source: str
    target: str
    protocol: str
    opens: bool


class Capture:
    """The packets on all interfaces but the loopback interface, from the creation of this object on."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        program, kept = _without_loopback()
        self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
        del kept
        self._socket.setblocking(False)

    def packets(self) -> list[Packet]:
        """Return the packets that pods have sent since the last call.

        Raises:
            AssertionError: The kernel has dropped packets.
        """
        found: list[Packet] = []
        with contextlib.suppress(BlockingIOError):
            while True:
                data, (interface, ethertype, kind, *_) = self._socket.recvfrom(BYTES)
                # A packet to another pod is seen twice: from its sender, and to its receiver.
                if kind != OUTGOING and interface != LOOPBACK:
                    found += _parsed(ethertype, data)
        _, dropped = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        assert dropped == 0, f"the kernel dropped {dropped} packets"
        return found

    def close(self) -> None:
        self._socket.close()


@contextlib.contextmanager
def capturing() -> Iterator[Capture]:
    """Yield a capture that begins now."""
    capture = Capture()
    try:
        yield capture
    finally:
        capture.close()


def _without_loopback() -> tuple[bytes, ctypes.Array[ctypes.c_char]]:
    """Return a filter of packets (struct sock_fprog), and the memory that it points to."""
    interface = 0xFFFFF000 + 8  # SKF_AD_OFF + SKF_AD_IFINDEX of linux/filter.h
    instructions = (
        (0x20, 0, 0, interface),  # load the index of the interface
        (0x15, 0, 1, socket.if_nametoindex(LOOPBACK)),
        (0x06, 0, 0, 0),  # drop
        (0x06, 0, 0, BYTES),  # keep
    )
    code = b"".join(struct.pack("HBBI", *item) for item in instructions)
    memory = ctypes.create_string_buffer(code)
    return struct.pack("HL", len(instructions), ctypes.addressof(memory)), memory


def _parsed(ethertype: int, data: bytes) -> Iterator[Packet]:
    match ethertype:
        case 0x0800:
            header, protocol = 4 * (data[0] & 15), data[9]
            source, target = (str(ipaddress.IPv4Address(data[at : at + 4])) for at in (12, 16))
        case 0x86DD:
            header, protocol = 40, data[6]
            source, target = (str(ipaddress.IPv6Address(data[at : at + 16])) for at in (8, 24))
            if ipaddress.IPv6Address(target).is_multicast:
                # The kernel looks for neighbours and routers on each new interface.
                return
        case _:
            return
    port = int.from_bytes(data[header + 2 : header + 4])
    match protocol:
        case socket.IPPROTO_TCP:
            opens = data[header + 13] & (SYN | ACK) == SYN
            yield Packet(source, f"{target}:{port}", "TCP", opens)
        case socket.IPPROTO_UDP:
            yield Packet(source, f"{target}:{port}", "UDP", True)
        case _:
            yield Packet(source, target, f"protocol {protocol}", True)
