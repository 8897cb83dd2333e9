"""The registered providers, and whether each is alive, by this process's clock (contract §5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final

from kubefoundry_sdk import Object
from kubefoundry_sdk.selector import Expiry
from kubefoundry_selector.candidate import Outage, Provider, provider

GONE: Final = " (its InferenceProviderConfig was deleted)"
"""`not_ready` of a provider whose registration has vanished. It may come back in a moment: a GitOps tool prunes and
applies again, and the provider registers itself with its next heartbeat."""

SHORT: Final = 300.0
"""Seconds for which a model waits for a provider that is down, before a provider of last resort is chosen."""


@dataclass(slots=True)
class _Entry:
    offered: Provider
    heartbeat: Any
    expiry: Expiry
    ready_until: float
    """The time at which it was last ready; -inf if it never was, for example because its upstream is not
    installed."""


class Registry:
    """The registered providers. A provider that is seen for the first time is alive.

    Args:
        clock: Returns monotonic seconds.
        timeout: Seconds without a change of its heartbeat after which a provider is not chosen (contract §5).
    """

    def __init__(self, clock: Callable[[], float], timeout: float) -> None:
        self._clock = clock
        self._timeout = timeout
        self._entries: dict[str, _Entry] = {}

    def see(self, name: str, config: Object | None) -> bool:
        """Record an InferenceProviderConfig, or its deletion. Return whether that matters to a choice."""
        before = self.get(name)
        if config is None:
            return self._forget(name, before)
        heartbeat = (config.get("status") or {}).get("lastHeartbeat")
        entry = self._entries.get(name)
        expiry = entry.expiry if entry else Expiry(self._clock)
        offered = provider(config)
        was_ready = offered.not_ready is None or (entry is not None and entry.offered.not_ready is None)
        until = self._clock() if was_ready else entry.ready_until if entry else -inf
        self._entries[name] = _Entry(offered, heartbeat, expiry, until)
        return self.get(name) != before

    def _forget(self, name: str, before: Provider | None) -> bool:
        """Keep a formerly healthy provider until its outage is long, so that no provider of last resort is chosen."""
        entry = self._entries.get(name)
        if entry is None:
            return False
        until = self._clock() if before is not None and before.healthy else entry.ready_until
        entry.offered, entry.ready_until = replace(entry.offered, not_ready=GONE), until
        return self.get(name) != before

    def get(self, name: str) -> Provider | None:
        """Return the provider's current state; None if it is not registered, and has no short outage."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        fresh = entry.expiry.see(entry.heartbeat) <= self._timeout
        if fresh and entry.offered.healthy:
            # Most reads end here, several for each event of a ModelDeployment: a copy takes a seventh of the CPU.
            return entry.offered
        outage_seconds = self._down_for(entry)
        if entry.offered.not_ready == GONE and outage_seconds is not None and outage_seconds >= SHORT:
            return None
        outage: Outage | None = None
        if outage_seconds is not None and outage_seconds < inf:
            outage = "short" if outage_seconds < SHORT else "long"
        return replace(entry.offered, heartbeat_fresh=fresh, outage=outage)

    def end_of_short_outage(self) -> float | None:
        """Return the seconds until the first short outage becomes long; None if there is none."""
        left = [
            SHORT - down for entry in self._entries.values() if (down := self._down_for(entry)) is not None
        ]
        return min((seconds for seconds in left if seconds > 0), default=None)

    def _down_for(self, entry: _Entry) -> float | None:
        """Return the seconds of the provider's outage; inf if it never was healthy, None if it is healthy."""
        silent = entry.expiry.see(entry.heartbeat) - self._timeout
        if entry.offered.not_ready is None:
            return silent if silent > 0 else None
        return max(silent, self._clock() - entry.ready_until)

    def providers(self) -> list[Provider]:
        """Return all registered providers, by name."""
        return [offered for name in sorted(self._entries) if (offered := self.get(name))]
