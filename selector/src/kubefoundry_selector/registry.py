"""The registered providers, and whether each is alive, as one reader's clock sees it (contract §5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.runtime.lease import Expiry
from kubefoundry_selector.candidate import Provider, provider


@dataclass(slots=True)
class _Entry:
    offered: Provider
    heartbeat: Any
    expiry: Expiry


class Registry:
    """`clock`: monotonic seconds. A provider that is seen for the first time is alive.

    timeout: seconds without a change of its heartbeat after which a provider is not chosen (contract §5).
    """

    def __init__(self, clock: Callable[[], float], timeout: float) -> None:
        self._clock = clock
        self._timeout = timeout
        self._entries: dict[str, _Entry] = {}

    def see(self, name: str, config: Object | None) -> bool:
        """Takes in an InferenceProviderConfig, or that it is gone; whether that bears on a choice."""
        before = self.get(name)
        if config is None:
            self._entries.pop(name, None)
            return before is not None
        heartbeat = (config.get("status") or {}).get("lastHeartbeat")
        expiry = self._entries[name].expiry if name in self._entries else Expiry(self._clock)
        self._entries[name] = _Entry(provider(config), heartbeat, expiry)
        return self.get(name) != before

    def get(self, name: str) -> Provider | None:
        entry = self._entries.get(name)
        if entry is None:
            return None
        fresh = entry.expiry.see(entry.heartbeat) <= self._timeout
        return replace(entry.offered, heartbeat_fresh=fresh)

    def providers(self) -> list[Provider]:
        """All that are registered, by name."""
        return [offered for name in sorted(self._entries) if (offered := self.get(name))]
