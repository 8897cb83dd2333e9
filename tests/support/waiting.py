"""Wait for states of objects by watches, never for time to pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError

SECONDS = 180.0
"""Seconds of every wait, at most. A disk has stopped a control plane for 71 s. A failure shows the last state."""

AGAIN = 0.1
"""Seconds until the next request for a kind that is not served yet, a moment after its CRD is established."""


async def until(
    client: Client,
    kind: Kind,
    name: str,
    namespace: str | None,
    holds: Callable[[Object | None], Any],
    *,
    seconds: float = SECONDS,
) -> Object | None:
    """Watch an object until `holds` is true of it, and return it. A missing object is None.

    Raises:
        AssertionError: `holds` was not true in time. The message has the last state.
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
                        kind,
                        namespace,
                        resource_version=version,
                        seconds=600,
                        silence=SECONDS,
                        selector=selector,
                    ):
                        if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                            last = None if event["type"] == "DELETED" else event["object"]
                            if holds(last):
                                return last
                except ApiError as error:
                    # A server that has just started asks for a retry. Every watching client does that.
                    if error.retry_after is None and not error.not_found:
                        raise
                    await asyncio.sleep(error.retry_after or AGAIN)
    except TimeoutError:
        visible = {key: value for key, value in (last or {}).items() if key in ("spec", "status")}
        raise AssertionError(
            f"{kind.kind} {namespace}/{name} did not reach the expected state in {seconds} s; "
            f"last state: {visible or last}"
        ) from None


async def until_deployment(
    client: Client, name: str, namespace: str, holds: Callable[[Object], Any], *, seconds: float = SECONDS
) -> Object:
    """Return a ModelDeployment once `holds` is true of it."""
    deployment = await until(
        client,
        MODEL_DEPLOYMENTS,
        name,
        namespace,
        lambda obj: obj is not None and holds(obj),
        seconds=seconds,
    )
    assert deployment is not None
    return deployment


def phase(obj: Object) -> str | None:
    """Return the phase, or None."""
    value = (obj.get("status") or {}).get("phase")
    return str(value) if value else None


def serves(obj: Object) -> bool:
    """Check whether the newest spec serves. The phase may be Running before the operator has seen the spec."""
    return (
        phase(obj) == "Running" and obj["status"].get("observedGeneration") == obj["metadata"]["generation"]
    )


def reason(obj: Object, type_: str) -> str | None:
    """Return the reason of the condition with this type, or None."""
    for item in (obj.get("status") or {}).get("conditions") or ():
        if item["type"] == type_:
            return str(item["reason"])
    return None


def message(obj: Object, type_: str) -> str:
    """Return the message of the condition with this type, or empty text."""
    for item in (obj.get("status") or {}).get("conditions") or ():
        if item["type"] == type_:
            return str(item["message"])
    return ""
