"""API requests of our processes in the API server's audit log: for a deployment (b), and at rest (d)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from benchmarks.figures import Figure, Section
from benchmarks.rig import CPU, GPU, Rig, deployment, say
from kubefoundry_local.audit_log import requests_by_user
from kubefoundry_local.control_plane import CannotRun

ACCOUNT: Final = "system:serviceaccount:kubefoundry-system:kubefoundry-"
"""Prefix of our components' ServiceAccounts in the audit log."""

WINDOW: Final = 60.0
"""Seconds of rest that are measured."""

Sort = Literal["work", "Event", "Lease", "heartbeat"]

Requests = Counter[tuple[str, Sort, str, str]]
"""Counts by component, sort, verb and resource."""


def audit_log(rig: Rig) -> Path:
    """Return the audit log.

    Raises:
        CannotRun: The control plane is not ours, so its audit log is out of reach.
    """
    log = rig.suite.plane.audit_log
    if log is None:
        raise CannotRun(
            "requests are counted in the audit log of a control plane of our own; unset the variable"
        )
    return log


def position(rig: Rig) -> int:
    """Return the present length of the audit log in bytes."""
    return audit_log(rig).stat().st_size


def entries(rig: Rig, start: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield component and audit entry of each finished request of our components since a position in the log."""
    for entry in requests_by_user(audit_log(rig), start):
        user = entry["user"]["username"]
        if user.startswith(ACCOUNT) and entry["stage"] == "ResponseComplete":
            yield user.removeprefix(ACCOUNT).removeprefix("provider-"), entry


def count(rig: Rig, start: int) -> Requests:
    """Count the requests of our components since a position in the log, without watches."""
    requests: Requests = Counter()
    for component, entry in entries(rig, start):
        if entry["verb"] == "watch":
            continue
        reference = entry.get("objectRef", {})
        resource = "/".join(filter(None, (reference.get("resource"), reference.get("subresource"))))
        requests[component, classify(component, entry["verb"], resource), entry["verb"], resource] += 1
    return requests


def classify(component: str, verb: str, resource: str) -> Sort:
    """Return the sort of a request.

    A provider patches the status of its registration only as a heartbeat. The selector patches it with results.
    """
    if resource == "events":
        return "Event"
    if resource == "leases":
        return "Lease"
    if resource == "inferenceproviderconfigs/status" and verb == "patch" and component != "selector":
        return "heartbeat"
    return "work"


def total(requests: Requests, *sorts: Sort) -> int:
    """Return the number of requests of the sorts."""
    return sum(number for (_, kind, _, _), number in requests.items() if kind in sorts)


def itemised(requests: Requests, each: int, *sorts: Sort) -> list[Figure]:
    """Return a figure for each component, verb and resource: the number of requests divided by `each`."""
    return [
        Figure(f"{component}: {verb} {resource}", number / each, "", detail=True)
        for (component, kind, verb, resource), number in sorted(requests.items())
        if kind in sorts
    ]


async def per_deployment(rig: Rig, n: int) -> Section:
    """Measure section b: n deployments without a named provider, one after another."""
    say(f"b. {n} one after another")
    namespace = await rig.namespace()
    start = position(rig)
    for index in range(n):
        body = deployment(f"counted-{index}", namespace, (CPU, GPU)[index % 2])
        await rig.run_all([body])
    requests = count(rig, start)
    await rig.clear(namespace)
    return Section(
        "b",
        "API requests a deployment",
        f"{n} without a named provider, one after another, from create until they were Running and nothing changed "
        "any more; the audit log's requests of our ServiceAccounts, divided by that number.",
        [
            Figure("all but Events, Leases and heartbeats", total(requests, "work") / n, "", aim=8),
            *itemised(requests, n, "work"),
            Figure("Events", total(requests, "Event") / n, ""),
        ],
    )


async def in_a_window(rig: Rig) -> Requests:
    """Count the requests of our components within WINDOW seconds."""
    start = position(rig)
    await asyncio.sleep(WINDOW)
    return count(rig, start)


async def at_rest(rig: Rig, n: int) -> Section:
    """Measure section d: n deployments are Running, and nothing changes."""
    say(f"d. {n} Running, {WINDOW:.0f} s of rest")
    namespace = await rig.namespace()
    await rig.run_all(
        [deployment(f"resting-{index}", namespace, GPU, list(rig.upstream)[index % 3]) for index in range(n)]
    )
    requests = await in_a_window(rig)
    await rig.clear(namespace)
    return Section(
        "d",
        f"Requests a minute with {n} Running and nothing changing",
        f"The audit log's requests of our ServiceAccounts within {WINDOW:.0f} s.",
        [
            Figure("all but Leases and heartbeats", total(requests, "work", "Event"), "", aim=0),
            *itemised(requests, 1, "work", "Event"),
            Figure("Leases and heartbeats", total(requests, "Lease", "heartbeat"), ""),
            *itemised(requests, 1, "Lease", "heartbeat"),
        ],
    )
