"""Keeps a sink equal to a kind on the API server: list, watch, and list again where the watch had a gap."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable

log = logging.getLogger(__name__)

BACKOFF: Final = (0.1, 0.2, 0.5, 1.0, 1.0, 2.0)
"""Seconds between attempts while the server does not answer; short, so that a restarted one is seen at once
(facts: kopf's default of up to 21 s left objects unattended for 7.5 s)."""

WATCH_SECONDS: Final = (480, 600)
"""How long the server is asked to keep a watch, drawn at random so that they do not all end together."""

REFUSED: Final = (1.0, 5.0, 60.0)
"""Seconds between attempts where `refused` is given and watching is forbidden: a server that has just started has
not read its roles yet, a permission that was left out may be granted some day."""

SILENCE: Final = 100.0
"""Seconds without a byte after which a watch counts as dead: the API server sends a bookmark every minute."""


class Sink(Protocol):
    """Where the objects go."""

    def replace(self, objects: list[Object], resource_version: str) -> None: ...
    def put(self, obj: Object) -> None: ...
    def remove(self, obj: Object) -> None: ...


async def reflect(
    client: Client,
    kind: Kind,
    sink: Sink,
    *,
    namespace: str | None = None,
    selector: Mapping[str, str] | None = None,
    alive: Callable[[], None] = lambda: None,
    refused: Callable[[], None] | None = None,
) -> None:
    """Runs until cancelled. `alive` is called at every sign of life of the watch.

    Deletions during a gap are reported through `replace`. A kind that is not served (404) is asked for again
    like a server that does not answer.

    refused: given for a kind that can be done without; called once watching it is forbidden (403) and stays so. What
    the sink holds is out of date from then on until the next `replace`.
    """
    version = ""
    failures = 0
    forbidden = 0
    while True:
        try:
            if not version:
                objects, version = await client.list(kind, namespace, selector=selector)
                sink.replace(objects, version)
                alive()
                failures = forbidden = 0
            async for event in client.watch(
                kind,
                namespace,
                resource_version=version,
                seconds=random.randint(*WATCH_SECONDS),
                silence=SILENCE,
                selector=selector,
            ):
                version = _deliver(event, sink, version)
                alive()
                failures = forbidden = 0
            alive()
            # A watch that ends at once would otherwise be a hot loop.
            delay = BACKOFF[0]
        except ApiError as error:
            if refused and error.code == 403:
                delay = REFUSED[min(forbidden, len(REFUSED) - 1)]
                if forbidden == 1:
                    log.warning("%s are left out, watching them is forbidden: %s", kind.plural, error)
                    version = ""
                    refused()
                forbidden += 1
                alive()
                await asyncio.sleep(delay * random.uniform(0.8, 1.2))
                continue
            if error.gone:
                version = ""
            delay = error.retry_after or BACKOFF[min(failures, len(BACKOFF) - 1)]
            if error.not_found:
                version = ""
            if not error.gone:
                _complain(kind, error, failures)
            failures += 1
        except Unreachable as error:
            delay = BACKOFF[min(failures, len(BACKOFF) - 1)]
            _complain(kind, error, failures)
            failures += 1
        await asyncio.sleep(delay * random.uniform(0.8, 1.2))


def _deliver(event: Object, sink: Sink, version: str) -> str:
    """Hands one watch event on; the resource version to continue from. Raises ApiError for an ERROR event."""
    obj = event["object"]
    match event["type"]:
        case "ADDED" | "MODIFIED":
            sink.put(obj)
        case "DELETED":
            sink.remove(obj)
        case "ERROR":
            raise ApiError.from_status(obj.get("code", 500), obj, request="WATCH")
        case _:
            pass
    return str(obj["metadata"].get("resourceVersion") or version)


def _complain(kind: Kind, error: Exception, failures: int) -> None:
    """Once a failure series, and again when it lasts."""
    if failures in (1, 10) or failures % 100 == 99:
        log.warning("watching %s fails, trying on: %s", kind.plural, error)
