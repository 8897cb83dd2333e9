"""The health of the registered providers: `ProviderHealthy`, and the time until a provider counts as gone.

Core uses its own monotonic clock and its own observations (contract §5): clocks of two machines are never compared,
and core does not know the time before its start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kubefoundry_sdk._api import contract_version, reasons
from kubefoundry_sdk._api.conditions import Condition, condition, find, without_time
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import part


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a provider.

    Attributes:
        reason: The reason of `ProviderHealthy` (contract §3).
        message: The message for the user. It is constant while the health is the same.
    """

    reason: Literal["HeartbeatSeen", "HeartbeatLost", "UpstreamOperatorDown"]
    message: str

    @property
    def good(self) -> bool:
        """Check whether the provider is alive and its upstream operator is up."""
        return self.reason == "HeartbeatSeen"


@dataclass(slots=True)
class _Seen:
    """Core's observations of a provider.

    Attributes:
        since: The time at which its heartbeat last changed, or at which core first knew of the provider.
        contract: The version of the contract that it states, empty if it states none.
        engines: The engines that it supports.
        expected: Whether a deployment depends on it and it was never registered.
        trouble: The message about its upstream operator, if that is down.
    """

    since: float
    registered: bool = False
    contract: str = ""
    engines: tuple[str, ...] = ()
    expected: bool = False
    heartbeat: object = None
    changed: bool = False
    trouble: str | None = None
    trouble_since: float = 0.0

    def see_operator(self, reported: Mapping[str, Any], now: float) -> None:
        """Record the condition of its upstream operator, empty if it has none."""
        trouble = str(reported.get("message", "")) if reported.get("status") == "False" else None
        if trouble is not None and self.trouble is None:
            self.trouble_since = now
        self.trouble = trouble


class Providers:
    """The providers that are registered, or on which a deployment depends.

    Args:
        clock: Returns monotonic seconds.
        timeout: Seconds after which a missing heartbeat, or an operator that is down, is reported. An operator is
            down for a moment while it is upgraded. Without this delay, every deployment would get two reports.
    """

    def __init__(self, clock: Callable[[], float], timeout: float) -> None:
        self._clock = clock
        self._timeout = timeout
        self._seen: dict[str, _Seen] = {}

    def see(self, name: str, config: Object | None) -> bool:
        """Record an InferenceProviderConfig, or its deletion. Return whether its registration has changed."""
        now = self._clock()
        seen = self._seen.get(name)
        is_new = seen is None or not seen.registered
        if config is None:
            if seen is not None:
                seen.registered, seen.trouble = False, None
            return not is_new
        status = part(config, "status")
        heartbeat = status.get("lastHeartbeat")
        if seen is None or is_new:
            seen = self._seen[name] = _Seen(now, registered=True, heartbeat=heartbeat)
        elif heartbeat is not None and heartbeat != seen.heartbeat:
            seen.heartbeat, seen.since, seen.changed = heartbeat, now, True
        seen.see_operator(find(status.get("conditions"), reasons.UPSTREAM_OPERATOR_UP) or {}, now)
        before, seen.contract = (seen.contract, seen.engines), contract_version.stated(config)
        engines = part(config, "spec", "capabilities").get("engines")
        seen.engines = tuple(map(str, engines)) if isinstance(engines, list) else ()
        return is_new or (seen.contract, seen.engines) != before

    def expect(self, name: str) -> bool:
        """Record that a deployment depends on the provider. Return whether the provider is new to core.

        A provider that was never registered is reported at once.
        """
        if name in self._seen:
            return False
        self._seen[name] = _Seen(self._clock(), expected=True)
        return True

    def registered(self) -> dict[str, str]:
        """Return the version of the contract that each registered provider states, empty if it states none."""
        return {name: seen.contract for name, seen in self._seen.items() if seen.registered}

    def engines(self) -> dict[str, tuple[str, ...]]:
        """Return the engines that each registered provider supports."""
        return {name: seen.engines for name, seen in self._seen.items() if seen.registered}

    def lost_in(self) -> dict[str, float]:
        """Return the seconds until each provider counts as gone without a heartbeat, 0 if it already does."""
        now = self._clock()
        return {
            name: max(0.0, self._timeout - (now - seen.since))
            for name, seen in self._seen.items()
            if seen.registered
        }

    def heartbeat_ages(self) -> dict[str, float]:
        """Return the seconds since the last heartbeat that core has seen of each registered provider."""
        now = self._clock()
        return {name: now - seen.since for name, seen in self._seen.items() if seen.registered}

    def healths(self) -> dict[str, Health]:
        """Return the health of each provider for which it is known."""
        now = self._clock()
        healths = {name: self._health(name, seen, now) for name, seen in self._seen.items()}
        return {name: health for name, health in healths.items() if health}

    def again(self) -> float | None:
        """Return the seconds until a result may change without an event, None if it cannot."""
        now = self._clock()
        since = [seen.since for seen in self._seen.values()]
        since += [seen.trouble_since for seen in self._seen.values() if seen.trouble is not None]
        left = [self._timeout - (now - moment) for moment in since]
        return min((seconds for seconds in left if seconds > 0), default=None)

    def _health(self, name: str, seen: _Seen, now: float) -> Health | None:
        if seen.expected:
            return Health(
                "HeartbeatLost",
                f"Provider {name} is not registered, so changes of this model wait until it is: "
                "ask an administrator to install it, or select another",
            )
        if now - seen.since >= self._timeout:
            unregistered = "" if seen.registered else "is not registered, and "
            return Health(
                "HeartbeatLost",
                f"Provider {name} {unregistered}has sent no heartbeat for {self._timeout:g} s: running pods are not "
                "affected, but "
                "changes wait until it is back; ask an administrator to check that "
                f"kubefoundry-provider-{name} is running",
            )
        if seen.trouble is not None:
            if now - seen.trouble_since < self._timeout:
                return None
            return Health(
                "UpstreamOperatorDown",
                f"The upstream operator of provider {name} is down: {seen.trouble}. Running pods are not "
                "affected, but "
                "changes wait until it is back",
            )
        return Health("HeartbeatSeen", f"Provider {name} is running") if seen.changed else None


def provider_healthy(
    live: Condition | None, healths: Sequence[Health | None], *, generation: int
) -> Condition | None:
    """Return the condition `ProviderHealthy` of a deployment, or None if it has no such condition.

    The condition is set only after a provider was unhealthy, which saves one write for every other deployment.

    Args:
        live: The current condition.
        healths: Health of the providers that the deployment depends on, the chosen one first; the first unhealthy one
            is reported. None keeps the last report, because the health is unknown, or because the paced report of
            this deployment is not due yet.
        generation: The generation of the ModelDeployment.
    """
    if not healths:
        return None
    health = next((each for each in healths if each and not each.good), healths[0])
    if live is None and (health is None or health.good):
        return None
    if health is None:
        return without_time(live)
    return condition(
        reasons.PROVIDER_HEALTHY, health.good, health.reason, health.message, generation=generation
    )
