"""Read and wait for Events about a ModelDeployment.

The Events are core/v1, which a user with `edit` may read on every version of Kubernetes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubefoundry_sdk._api.kinds import CORE_EVENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.waiting import SECONDS


async def notes(client: Client, namespace: str, reason: str) -> list[str]:
    """Return the notes of the Events with a reason in the namespace, oldest first."""
    items, _ = await client.list(CORE_EVENTS, namespace)
    events = [item for item in items if item["reason"] == reason]
    return [str(item.get("message", "")) for item in sorted(events, key=lambda item: item["eventTime"])]


async def until_event(
    client: Client,
    namespace: str,
    reason: str,
    holds: Callable[[str], bool] = bool,
    *,
    seconds: float = SECONDS,
) -> str:
    """Return the note of the first Event with the reason for which `holds` is true. Fail if there is none in time."""
    others: list[str] = []
    try:
        async with asyncio.timeout(seconds):
            items, version = await client.list(CORE_EVENTS, namespace)
            for item in items:
                if note := _matching(item, reason, holds, others):
                    return note
            async for event in client.watch(
                CORE_EVENTS,
                namespace,
                resource_version=version,
                seconds=int(seconds) + 1,
                silence=seconds + 1,
            ):
                if event["type"] == "ADDED" and (note := _matching(event["object"], reason, holds, others)):
                    return note
    except TimeoutError:
        pass
    raise AssertionError(
        f"no matching Event {reason} in {namespace} within {seconds} s; other Events: {others}"
    )


def _matching(event: Object, reason: str, holds: Callable[[str], bool], others: list[str]) -> str | None:
    note = str(event.get("message", ""))
    if event["reason"] == reason and holds(note):
        return note
    others.append(f"{event['reason']}: {note}")
    return None
