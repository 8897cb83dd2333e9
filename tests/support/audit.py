"""Requests of our components, read from the audit log of the API server."""

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
Found = TypeVar("Found")


class AuditLog:
    """What the components asked of the API server since this was made. Skips where the server is not ours.

    A watch may show what a request did before the log has it, so the time of its arrival counts, by the API server's
    clock, which is this machine's.
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
        """Finished requests of a component (`provider-kaito`) about objects of that plural in the namespace."""
        return [
            entry
            for entry in self._entries()
            if entry["stage"] == "ResponseComplete"
            and entry["user"]["username"] == f"{ACCOUNT}{component}"
            and entry.get("objectRef", {}).get("namespace") == namespace
            and entry["objectRef"].get("resource") == resource
        ]

    def writes(self, component: str, namespace: str, resource: str) -> list[str]:
        """Verb and URI of those that change something, dry runs apart. A conflict has changed nothing."""
        return [
            f"{entry['verb']} {entry['requestURI']}"
            for entry in self.requests(component, namespace, resource)
            if entry["verb"] in WRITES
            and "dryRun=All" not in entry["requestURI"]
            and entry["responseStatus"]["code"] != 409
        ]

    def simulated(self, namespace: str, resource: str) -> list[dict[str, Any]]:
        """Successful writes of the simulated operators to that plural, with its subresource, in the namespace."""
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
        """Component and latest entry of each of our requests, about objects of the namespace where one is given."""
        latest = {
            entry["auditID"]: (entry["user"]["username"].removeprefix(ACCOUNT), entry)
            for entry in self._entries()
            if entry["user"]["username"].startswith(ACCOUNT)
            and (namespace is None or entry.get("objectRef", {}).get("namespace") == namespace)
        }
        return list(latest.values())


async def until_logged(read: Callable[[], Found], holds: Callable[[Found], bool]) -> Found:
    """What is read of a log once `holds` is true of it, else what was read last.

    A request is in the log before its sender has the answer, but not before a watch shows others what it did.
    """
    until = time.monotonic() + SECONDS
    while True:
        found = read()
        if holds(found) or time.monotonic() > until:
            return found
        await asyncio.sleep(PROBE)
