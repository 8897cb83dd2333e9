"""Limits the memory that the objects of one namespace may take in a process.

A tenant may create as many objects as the API server stores. Without a limit, 300 ConfigMaps of a megabyte with our
labels would exhaust the memory of the process that keeps them, and so stop the process for all tenants.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

TOTAL: Final = 48 * 2**20
"""Bytes that the objects of all namespaces together may take in one store, deflated: 30,000 of the usual 1.5 KiB. A
process has two to five stores, and 256 MiB in our manifests."""

OVERHEAD: Final = 600
"""Bytes that an object takes beside its content: its key, its version, its places in dicts."""


class MemoryQuota:
    """The bytes that each namespace takes. Cluster-scoped objects do not count: tenants cannot create them.

    A namespace may take at most half of the memory that stays free, so a single namespace gets a third of the total.
    However many namespaces fill their share, some memory is left for others (dynamic thresholds: Choudhury and Hahne,
    IEEE/ACM Transactions on Networking 6(2), 1998).
    """

    def __init__(self, total: int = TOTAL) -> None:
        self._total = total
        self._free = total
        self._taken: Counter[str] = Counter()

    def left(self, namespace: str) -> int:
        """Return the bytes by which the namespace's objects may grow."""
        if not namespace:
            return self._total
        return max(0, (self._free - 2 * self._taken[namespace]) // 3)

    def taken(self, namespace: str) -> int:
        """Return the bytes that the namespace's objects take."""
        return self._taken[namespace]

    def change(self, namespace: str, growth: int) -> None:
        """Record that the namespace's objects take that many bytes more, or fewer."""
        if not namespace:
            return
        self._free -= growth
        self._taken[namespace] += growth
        if not self._taken[namespace]:
            del self._taken[namespace]

    def copy(self) -> MemoryQuota:
        """Return a copy, to plan changes that may not happen."""
        copied = MemoryQuota(self._total)
        copied._free = self._free
        copied._taken = self._taken.copy()
        return copied
