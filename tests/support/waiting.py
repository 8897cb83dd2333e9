"""Waiting for what the API server reports, never for time to pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError

SECONDS = 60.0
"""Bound on every wait: it ends a hang, no matter how busy the machine is; a fault shows as the last state seen."""

AGAIN = 0.1
"""Seconds until a kind is asked for again that is not served: it is, a moment after its CRD is established."""


async def until(
    client: Client,
    kind: Kind,
    name: str,
    namespace: str | None,
    holds: Callable[[Object | None], Any],
    *,
    seconds: float = SECONDS,
) -> Object | None:
    """The object as soon as `holds` is true of it (None: there is none), from a watch.

    Fails with the last state when that does not come about in time.
    """
    last: Object | None = None
    try:
        async with asyncio.timeout(seconds):
            selector = {"fieldSelector": f"metadata.name={name}"}
            while True:
                try:
                    items, version = await client.list(kind, namespace, selector=selector)
                    last = items[0] if items else None
                    if holds(last):
                        return last
                    async for event in client.watch(
                        kind, namespace, resource_version=version, seconds=60, silence=120, selector=selector
                    ):
                        if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                            last = None if event["type"] == "DELETED" else event["object"]
                            if holds(last):
                                return last
                except ApiError as error:
                    # What every watching client does: the server that has just started asks to come again.
                    if error.retry_after is None and not error.not_found:
                        raise
                    await asyncio.sleep(error.retry_after or AGAIN)
    except TimeoutError:
        shown = {key: value for key, value in (last or {}).items() if key in ("spec", "status")}
        raise AssertionError(
            f"{kind.kind} {namespace}/{name} did not get there in {seconds} s; last seen: {shown or last}"
        ) from None


async def until_deployment(
    client: Client, name: str, namespace: str, holds: Callable[[Object], Any], *, seconds: float = SECONDS
) -> Object:
    """A ModelDeployment of which `holds` is true."""
    found = await until(
        client,
        MODEL_DEPLOYMENTS,
        name,
        namespace,
        lambda obj: obj is not None and holds(obj),
        seconds=seconds,
    )
    assert found is not None
    return found


def phase(obj: Object) -> str | None:
    value = (obj.get("status") or {}).get("phase")
    return str(value) if value else None


def serves(obj: Object) -> bool:
    """Whether the newest spec serves. Running alone comes earlier: while the status of an operator settles."""
    return (
        phase(obj) == "Running" and obj["status"].get("observedGeneration") == obj["metadata"]["generation"]
    )


def reason(obj: Object, type_: str) -> str | None:
    """Reason of the condition of that type, None where there is none."""
    for item in (obj.get("status") or {}).get("conditions") or ():
        if item["type"] == type_:
            return str(item["reason"])
    return None


def message(obj: Object, type_: str) -> str:
    """Message of the condition of that type, empty where there is none."""
    for item in (obj.get("status") or {}).get("conditions") or ():
        if item["type"] == type_:
            return str(item["message"])
    return ""
