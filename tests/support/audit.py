"""Read the requests of our components from the audit log of the API server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest

from kubefoundry_local.audit_log import requests_by_user
from kubefoundry_local.suite import PROBE, Suite
from support.waiting import SECONDS

ACCOUNT = "system:serviceaccount:kubefoundry-system:kubefoundry-"
WRITES = frozenset({"create", "update", "patch", "delete"})
Entries = TypeVar("Entries")


class AuditLog:
    """The requests of the components since this object was created. Skips the test if the server is not ours.

    A watch may show the effect of a request before the log has the request. So requests are selected by the time of
    their arrival, on the API server's clock, which is this machine's.
    """

    def __init__(self, suite: Suite) -> None:
        if suite.plane.audit_log is None:
            pytest.skip("the audit log of a cluster that is not ours is out of reach")
        self._file = suite.plane.audit_log
        self._start = self._file.stat().st_size
        self._since = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

    def _entries(self) -> Iterator[dict[str, Any]]:
        entries = requests_by_user(self._file, self._start)
        return (entry for entry in entries if entry["requestReceivedTimestamp"] >= self._since)

    def requests(self, component: str, namespace: str, resource: str) -> list[dict[str, Any]]:
        """Return the finished requests of a component (`provider-kaito`) for a resource (plural) in the namespace."""
        return [
            entry
            for entry in self._entries()
            if entry["stage"] == "ResponseComplete"
            and entry["user"]["username"] == f"{ACCOUNT}{component}"
            and entry.get("objectRef", {}).get("namespace") == namespace
            and entry["objectRef"].get("resource") == resource
        ]

    def writes(self, component: str, namespace: str, resource: str) -> list[str]:
        """Return verb and URI of the requests that may have changed an object: no dry runs, no conflicts."""
        return [
            f"{entry['verb']} {entry['requestURI']}"
            for entry in self.requests(component, namespace, resource)
            if entry["verb"] in WRITES
            and "dryRun=All" not in entry["requestURI"]
            and entry["responseStatus"]["code"] != 409
        ]

    def simulated(self, namespace: str, resource: str) -> list[dict[str, Any]]:
        """Return successful writes of the simulated operators to a resource, as `plural/subresource`."""
        plural, _, subresource = resource.partition("/")
        return [
            entry
            for entry in self._entries()
            if entry["stage"] == "ResponseComplete"
            and entry["verb"] in WRITES
            and entry["userAgent"].startswith("Python/")
            and entry["responseStatus"]["code"] < 300
            and entry.get("objectRef", {}).get("namespace") == namespace
            and (entry["objectRef"]["resource"], entry["objectRef"].get("subresource", ""))
            == (plural, subresource)
        ]

    def all(self, namespace: str | None = None) -> list[tuple[str, dict[str, Any]]]:
        """Return component and latest entry of each request of our components, in all namespaces by default."""
        latest = {
            entry["auditID"]: (entry["user"]["username"].removeprefix(ACCOUNT), entry)
            for entry in self._entries()
            if entry["user"]["username"].startswith(ACCOUNT)
            and (namespace is None or entry.get("objectRef", {}).get("namespace") == namespace)
        }
        return list(latest.values())


async def until_logged(read: Callable[[], Entries], holds: Callable[[Entries], bool]) -> Entries:
    """Read a log until `holds` is true of the entries. Return the last entries, even if it never was.

    A request is in the log before its sender has the response, but a watch may show its effect earlier.
    """
    until = time.monotonic() + SECONDS
    while True:
        entries = read()
        if holds(entries) or time.monotonic() > until:
            return entries
        await asyncio.sleep(PROBE)
