"""Keeps a sink equal to a kind on the API server: list, watch, and list again where the watch had a gap.

Nothing that is in an object ends this: what a sink cannot take in is left out (`skipped`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.cluster.skipped import skipped

log = logging.getLogger(__name__)

BACKOFF: Final = (0.1, 0.2, 0.5, 1.0, 1.0, 2.0)
"""Seconds between attempts while the server does not answer; short, so that a restarted one is seen at once
(docs/event-sources.md: kopf's default of up to 21 s left objects unattended for 7.5 s)."""

WATCH_SECONDS: Final = (480, 600)
"""How long the server is asked to keep a watch, drawn at random so that they do not all end together."""

REFUSED: Final = (1.0, 5.0, 60.0)
"""Seconds between attempts where `refused` is given and watching is forbidden: a server that has just started has
not read its roles yet, a permission that was left out may be granted some day."""

BLIND: Final = 60.0
"""Seconds between attempts at most, whatever the server asks for: nothing is seen meanwhile."""

SILENCE: Final = 100.0
"""Seconds without a byte after which a watch counts as dead: the API server sends a bookmark every minute."""


class Sink(Protocol):
    """Where the objects go."""

    def replace(self, objects: Iterator[Object], resource_version: str, *, rewound: bool) -> None:
        """A whole listing. rewound: the API server's history went back (etcd was restored from a backup): resource
        versions from before say nothing any more."""

    def put(self, obj: Object) -> None: ...
    def remove(self, obj: Object) -> None: ...


def _nothing() -> None:
    pass


async def reflect(
    client: Client,
    kind: Kind,
    sink: Sink,
    *,
    namespace: str | None = None,
    selector: Mapping[str, str] | None = None,
    alive: Callable[[], None] = _nothing,
    tried: Callable[[], None] = _nothing,
    refused: Callable[[], None] | None = None,
) -> None:
    """Runs until cancelled. `alive` is called at every sign of life of the watch, `tried` when there was none.

    Deletions during a gap are reported through `replace`. A kind that is not served (404) is asked for again
    like a server that does not answer.

    refused: given for a kind that can be done without; called once watching it is forbidden (403) and stays so. What
    the sink holds is out of date from then on until the next `replace`.
    """
    version = seen = ""
    failures = 0
    forbidden = 0
    lost = False
    while True:
        try:
            if version and lost and await _went_back(client, kind, namespace, selector, version):
                version = ""
            lost = False
            if not version:
                objects, version = await _listed(client, kind, namespace, selector)
                rewound = _older(version, seen)
                if rewound:
                    log.warning(
                        "the API server returned an older list of %s than before, listing again", kind.plural
                    )
                seen = version
                sink.replace(objects, version, rewound=rewound)
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
                came = _deliver(event, sink) or version
                alive()
                failures = forbidden = 0
                if _older(came, version):
                    version = ""
                    break
                version = seen = came
            alive()
            # A watch that ends at once would otherwise be a hot loop.
            delay = BACKOFF[0]
        except ApiError as error:
            tried()
            if refused and error.code == 403:
                delay = REFUSED[min(forbidden, len(REFUSED) - 1)]
                if forbidden == 1:
                    log.warning("%s are skipped, watching them is forbidden: %s", kind.plural, error)
                    version = ""
                    refused()
                forbidden += 1
                await asyncio.sleep(delay * random.uniform(0.8, 1.2))
                continue
            if error.gone:
                version = ""
            delay = min(error.retry_after or BACKOFF[min(failures, len(BACKOFF) - 1)], BLIND)
            if error.not_found:
                version = ""
            if not error.gone:
                _complain(kind, error, failures)
            failures += 1
        except Unreachable as error:
            tried()
            lost = True
            delay = BACKOFF[min(failures, len(BACKOFF) - 1)]
            _complain(kind, error, failures)
            failures += 1
        await asyncio.sleep(delay * random.uniform(0.8, 1.2))


async def _listed(
    client: Client, kind: Kind, namespace: str | None, selector: Mapping[str, str] | None
) -> tuple[Iterator[Object], str]:
    """All objects, and the resource version to watch from; of several pages all but the last are held deflated."""
    deflated: list[bytes] = []
    last: list[Object] = []
    version = ""
    async for page, version in client.pages(kind, namespace, selector=selector):  # noqa: B007 (the last one)
        if last:
            deflated.append(zlib.compress(json.dumps(last, ensure_ascii=False).encode(), 1))
        last = page
    return _inflated(deflated, last), version


def _inflated(deflated: list[bytes], last: list[Object]) -> Iterator[Object]:
    """The objects, each page let go once it is read."""
    deflated.reverse()
    while deflated:
        yield from json.loads(zlib.decompress(deflated.pop()))
    while last:
        yield last.pop(0)


async def _went_back(
    client: Client, kind: Kind, namespace: str | None, selector: Mapping[str, str] | None, version: str
) -> bool:
    """Whether the server's newest version is older than ours, from which it would tell us nothing for long.

    A server that etcd was restored under ends its watches, so it is enough to ask after a connection was lost.
    """
    async for _, newest in client.pages(kind, namespace, selector=selector, limit=1):
        return _older(newest, version)
    return False


def _older(one: str, other: str) -> bool:
    """Of two resource versions, which are numbers (promised from Kubernetes 1.35, so before)."""
    return one.isdecimal() and other.isdecimal() and int(one) < int(other)


def _deliver(event: Object, sink: Sink) -> str:
    """Hands one watch event on; its resource version. Raises ApiError for an ERROR event."""
    obj = event["object"]
    if event["type"] == "ERROR":
        raise ApiError.from_status(500, obj, request="WATCH")
    try:
        match event["type"]:
            case "ADDED" | "MODIFIED":
                sink.put(obj)
            case "DELETED":
                sink.remove(obj)
            case _:
                pass
    except Exception as error:
        skipped(obj, error)
    meta = obj.get("metadata")
    return str(meta.get("resourceVersion") or "") if isinstance(meta, dict) else ""


def _complain(kind: Kind, error: Exception, failures: int) -> None:
    """Once a failure series, and again when it lasts."""
    if failures in (1, 10) or failures % 100 == 99:
        log.warning("watching %s failed, retrying: %s", kind.plural, error)
