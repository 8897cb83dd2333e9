"""Taking a ModelDeployment over from another provider: after its clean-up, or in the end without (contract §4.6)."""

from __future__ import annotations

import re
from typing import Final

from kubefoundry_sdk.api import names, reasons
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.report import Stop
from kubefoundry_sdk.runtime.store import Key

_FINALIZER: Final = re.compile(re.escape(names.PREFIX) + r"(?P<provider>.+)-provider")


def others(deployment: Object, provider: str) -> list[str]:
    """Providers that still hold the ModelDeployment by their finalizer."""
    found = (_FINALIZER.fullmatch(name) for name in deployment["metadata"].get("finalizers") or ())
    return [match["provider"] for match in found if match and match["provider"] != provider]


class Waits:
    """Since when which ModelDeployment has waited for whom.

    timeout: seconds that another provider gets for its clean-up, from when this shim first saw that it has to wait.
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._since: dict[Key, tuple[str, list[str], float]] = {}

    def left(self, key: Key, uid: str, holders: list[str], now: float) -> float:
        """Seconds that there is still to wait; the clock starts anew when the holders change."""
        known = self._since.get(key)
        if known is None or known[:2] != (uid, holders):
            self._since[key] = (uid, holders, now)
            return self.timeout
        return self.timeout - (now - known[2])

    def forget(self, key: Key) -> None:
        self._since.pop(key, None)


def waiting(holders: list[str]) -> Stop:
    message = f"Waiting for provider {', '.join(holders)} to remove what it made for this ModelDeployment"
    return Stop(reasons.RESOURCE_CREATED, "WaitingForCleanup", message, failed=False)


def given_up(holders: list[str], timeout: float) -> str:
    """What the Event says when the time is over."""
    return (
        f"Provider {', '.join(holders)} has not cleaned up in {timeout:.0f} s; going on without. "
        "What it made may still run: delete it by hand"
    )
