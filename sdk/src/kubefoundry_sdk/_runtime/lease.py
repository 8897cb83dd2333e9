"""A Lease: held by one replica of a component, and a sign to others that the component is alive.

The holder checks the Lease's age before each write (`Holder.holds`), by a clock that keeps running while the process
or the machine is frozen. Each attempt has its own deadline, so a hanging API server ends leadership in time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from kubefoundry_sdk._api.kinds import LEASES, Object
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.retry import requested
from kubefoundry_sdk._runtime import wall_clock
from kubefoundry_sdk._runtime.refusals import Obstacle, obstacle

log = logging.getLogger(__name__)

DURATION: Final = 15.0
RENEW: Final = 5.0
RETRY: Final = 0.9
"""Seconds: how long a Lease is valid without renewal, how often it is renewed, how often others try (duration as in
Kubernetes' own components; renewal is rarer because it is the only traffic of an idle installation with one replica).
Others notice the last renewal of a leader that dies up to RETRY later, so they lead within DURATION and a second."""
AFTERWARDS: Final = 0.01
"""Seconds after a Lease's end at which it has certainly expired."""

_REMEDIES: Final = {
    Obstacle.POLICY: "contact the owner of that webhook or policy",
    Obstacle.QUOTA: "have the quota raised",
    Obstacle.NAMESPACE: "the namespace is being deleted",
}
"""Advice about a refused write by its cause. For any other cause of a 403, a permission is missing."""


class LeaseLost(Exception):
    """Another replica holds the Lease, or it could not be renewed in time: this replica must not write."""


def now() -> float:
    """Return the seconds of a clock of this machine that cannot be set, and that also runs during a suspend."""
    return time.clock_gettime(_CLOCK)


_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Expiry:
    """Decides by the reader's own monotonic clock whether a Lease (or heartbeat) is alive.

    Clocks of two machines are never compared: only the time at which this process last saw the content change counts.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: Any = None
        self._since = 0.0

    def see(self, content: Any) -> float:
        """Return the seconds since `content` last changed; 0 at first sight."""
        now = self._clock()
        if content != self._seen:
            self._seen, self._since = content, now
        return now - self._since


def expired(lease: Object | None, age: float) -> bool:
    """Check whether the Lease is absent, released, or unchanged for longer than its duration."""
    spec = (lease or {}).get("spec") or {}
    if not spec.get("holderIdentity"):
        return True
    return age > _duration(lease)


def _duration(lease: Object | None) -> float:
    return float(((lease or {}).get("spec") or {}).get("leaseDurationSeconds") or DURATION)


class Holder:
    """Takes and keeps the Lease `name` in `namespace` under `identity`.

    The identity is the pod's uid, so a restarted container takes its own Lease back immediately.
    """

    def __init__(self, client: Client, *, name: str, namespace: str, identity: str) -> None:
        self._client = client
        self._name = name
        self._namespace = namespace
        self._identity = identity
        self._expiry = Expiry(lambda: asyncio.get_running_loop().time())
        self._lease: Object | None = None
        self._renewed: float | None = None
        """The time at which the request was sent that took or renewed the Lease last; None while it is not held."""
        self._expires_in = 0.0
        """Seconds until the Lease of another replica has expired if it is not renewed, at the last attempt."""
        self.refused: str | None = None
        """Why the Lease cannot be taken, if the API server or its admission refuses that: waiting does not help."""

    @property
    def holds(self) -> bool:
        """Whether the Lease stays ours long enough that a write arrives before the writes of another replica."""
        return self._renewed is not None and now() - self._renewed <= DURATION - RENEW

    async def take(self) -> None:
        """Wait until the Lease is ours."""
        failures = 0
        while True:
            pause = RETRY
            try:
                if await self._renew():
                    log.info("holding lease", extra=self._values(holder=self._identity))
                    return
                pause = min(RETRY, self._expires_in)
            except (ApiError, Unreachable) as error:
                if isinstance(error, ApiError) and (error.denied or error.rejected or error.not_found):
                    self.refused = (
                        f"lease {self._namespace}/{self._name} cannot be held: {error.message}; "
                        f"{self._remedy(error)}"
                    )
                if failures in (0, 10) or failures % 100 == 99:
                    log.warning("acquiring lease failed, retrying", extra=self._values(error=str(error)))
                failures += 1
                pause = max(RETRY, requested(error, DURATION))
            await asyncio.sleep(pause)

    def _values(self, **more: str) -> dict[str, dict[str, Any]]:
        """Return the name of the Lease and more as values of a log line."""
        return logs.values(lease=f"{self._namespace}/{self._name}", **more)

    def _remedy(self, error: ApiError) -> str:
        """Return the advice about a refused write. A webhook may deny it with any code."""
        if error.not_found:
            return f"create namespace {self._namespace}, or set --namespace to the component's own"
        cause = Obstacle.POLICY if error.denied else obstacle(error)
        grant = (
            f"grant this in namespace {self._namespace}, or set --namespace to the component's own"
            if error.code == 403
            else "contact the cluster's administrator"
        )
        return _REMEDIES.get(cause, grant)

    async def keep(self) -> None:
        """Renew until cancelled, then release the Lease. Raise LeaseLost.

        A Lease that was not renewed in time is lost even if nobody has taken it: earlier decisions may be out of
        date.
        """
        try:
            while True:
                fresh = self._renewed is not None and now() - self._renewed < RENEW
                await asyncio.sleep(RENEW if fresh else RETRY)
                try:
                    if self.holds and not await self._renew():
                        raise LeaseLost(
                            f"lease {self._namespace}/{self._name} was acquired by another replica"
                        )
                except (ApiError, Unreachable) as error:
                    log.warning("renewing lease failed", extra=self._values(error=str(error)))
                if not self.holds:
                    raise LeaseLost(f"lease {self._namespace}/{self._name} could not be renewed in time")
        except asyncio.CancelledError:
            await self._release()
            raise
        finally:
            self._renewed = None

    async def _renew(self) -> bool:
        """Run `_try` within RENEW seconds."""
        sent = now()
        try:
            async with asyncio.timeout(RENEW):
                is_held = await self._try()
        except TimeoutError:
            raise Unreachable(f"no response within {RENEW:.0f} s") from None
        self.refused = None
        if not is_held:
            return False
        self._renewed = sent
        return True

    async def _try(self, *, is_repeated: bool = False) -> bool:
        """Try to write the Lease as ours. Return False if another replica holds it.

        The attempt is repeated at once, one time, if somebody else wrote, created or deleted the Lease meanwhile.
        """
        if self._lease is None and not await self._free():
            return False
        try:
            if self._lease is None:
                self._lease = await self._client.create(LEASES, self._body(None), manager=self._identity)
            else:
                self._lease = await self._client.replace(
                    LEASES, self._body(self._lease), manager=self._identity
                )
        except ApiError as error:
            is_changed = error.code == 409 or (error.not_found and self._lease is not None)
            if error.denied or not is_changed:
                # A new Lease causes 404 if its namespace does not exist.
                raise
            self._lease = None
            if is_repeated:
                raise
            return await self._free() and await self._try(is_repeated=True)
        return True

    async def _free(self) -> bool:
        """Read the Lease into `_lease` if it may be taken: absent, ours, released or expired."""
        try:
            lease = await self._client.get(LEASES, self._name, self._namespace)
        except ApiError as error:
            if not error.not_found:
                raise
            return True
        age = self._expiry.see(lease["metadata"]["resourceVersion"])
        holder = (lease.get("spec") or {}).get("holderIdentity")
        if holder != self._identity and not expired(lease, age):
            self._expires_in = _duration(lease) - age + AFTERWARDS
            return False
        self._lease = lease
        return True

    def _body(self, current: Object | None) -> Object:
        now = wall_clock.now().isoformat(timespec="microseconds").replace("+00:00", "Z")
        before = (current or {}).get("spec") or {}
        is_same_holder = before.get("holderIdentity") == self._identity
        metadata = {"name": self._name, "namespace": self._namespace}
        if current:
            metadata["resourceVersion"] = current["metadata"]["resourceVersion"]
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": metadata,
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": int(DURATION),
                "acquireTime": (is_same_holder and before.get("acquireTime")) or now,
                "renewTime": now,
                "leaseTransitions": int(before.get("leaseTransitions") or 0)
                + (0 if is_same_holder or not current else 1),
            },
        }

    async def _release(self) -> None:
        """Clear the holder, so that another replica need not wait."""
        if self._lease is None:
            return
        body = self._body(self._lease)
        body["spec"] = {**body["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            async with asyncio.timeout(2):
                await self._client.replace(LEASES, body, manager=self._identity)
        except (ApiError, Unreachable, TimeoutError) as error:
            log.info("lease not released", extra=self._values(error=str(error)))
