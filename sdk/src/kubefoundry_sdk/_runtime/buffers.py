"""Bounds the memory that the buffers of a process keep."""

from __future__ import annotations

import ctypes
from asyncio import sslproto
from typing import Final

TLS_READ: Final = 16 * 1024
"""Bytes of the buffer that each TLS connection holds and each read allocates: the longest record. asyncio's 256 KiB
cost 40 MB for the 60 connections that a busy API server opens to a webhook, and kept them afterwards."""

LARGE: Final = 128 * 1024
"""Bytes from which malloc takes a buffer from the system: glibc's first value of `_MMAP_THRESHOLD`."""

_MMAP_THRESHOLD: Final = -3
"""`M_MMAP_THRESHOLD` of glibc's malloc.h."""


def limit_tls_buffers() -> None:
    """Set the buffers of this program's TLS connections to TLS_READ."""
    sslproto.SSLProtocol.max_size = TLS_READ


def map_large_buffers() -> None:
    """Return the memory of each large buffer to the system with its end.

    Otherwise glibc takes buffers of a size that was freed once from the heap. There, the bodies of a few CRDs leave
    gaps, which cost core 6 MB as long as it runs. Other C libraries have no such parameter.
    """
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(_MMAP_THRESHOLD, LARGE)
