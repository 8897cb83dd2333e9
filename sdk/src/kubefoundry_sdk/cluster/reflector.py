"""Keeps a sink equal to a kind on the API server: list, watch, and list again after a gap.

No object's content stops this: what a sink cannot read is skipped (`skipped`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError, Silent, Unreachable
from kubefoundry_sdk.cluster.skipped import skipped

log = logging.getLogger(__name__)

BACKOFF: Final = (0.1, 0.2, 0.5, 1.0, 1.0, 2.0)
"""Seconds between attempts while the server does not answer; short, so that a restarted one is noticed quickly
(docs/event-sources.md: kopf's default of up to 21 s left objects unattended for 7.5 s)."""

WATCH_SECONDS: Final = (480, 600)
"""How long the server is asked to keep a watch, with jitter so that they do not all end together."""

ON_TIME: Final = 5.0
"""Seconds before and after that within which a watch ends because its time is over."""

PASSING: Final = (429, 500)
"""Refusals by a server that is there, just busy: the first of them costs no list, which would make it busier."""

REFUSED: Final = (1.0, 5.0, 60.0)
"""Seconds between attempts if `refused` is given and watching is forbidden: a server that has just started has not
loaded its roles yet, and a missing permission may be granted later."""

BLIND: Final = 60.0
"""The longest wait between attempts in seconds, whatever the server asks for: nothing is seen meanwhile."""

SILENCE: Final = 100.0
"""Seconds without a byte after which a watch counts as dead. The API server sends a bookmark every minute if it knows
of a newer version, which not every etcd tells it, and none for Events (seen with Kubernetes 1.36)."""


class Sink(Protocol):
    """The target of the objects."""

    def replace(self, objects: Iterator[Any], resource_version: str, *, rewound: bool) -> None:
        """A complete list: of objects, or of what `Bounded` has reduced them to.

        rewound: the API server's history went back (etcd was restored from a backup), so earlier resource versions
            mean nothing any more.
        """

    def put(self, obj: Object) -> None: ...
    def remove(self, obj: Object) -> None: ...


class Bounded(Protocol):
    """What bounds the memory that the sink's objects take."""

    def arriving(self) -> Callable[[Object], Any]:
        """For one listing: reduces each object as its page arrives; None to leave it out."""

    @property
    def incomplete(self) -> bool:
        """Whether objects were left out: they are listed again once the watch ends."""


def _nothing() -> None:
    pass


def _ignored(error: Exception) -> None:
    pass


async def reflect(
    client: Client,
    kind: Kind,
    sink: Sink,
    *,
    namespace: str | None = None,
    selector: Mapping[str, str] | None = None,
    bounded: Bounded | None = None,
    alive: Callable[[], None] = _nothing,
    tried: Callable[[Exception], None] = _ignored,
    refused: Callable[[], None] | None = None,
) -> None:
    """Runs until cancelled. `alive` is called at every sign of life of the watch, `tried` with each error.

    A watch is resumed where it ended if its time is over, if nothing came for so long that the connection may be dead
    (`_went_back` is asked first), and if a busy server asks for a moment. After any other end everything is listed:
    the server may have come back with etcd's data from a backup, and how far its new history goes says nothing about
    what it has in common with the one that we saw. (A server that has restarted could resume hardly any watch.)

    Deletions during a gap are reported through `replace`. A kind that is not served (404) is retried like a server
    that does not answer.

    bounded: what keeps the sink's objects, if their number and size are up to tenants.
    refused: given for an optional kind; called once watching it is forbidden (403) and stays so. From then on the
        sink is out of date until the next `replace`, which comes once watching is permitted.
    """
    version = seen = ""
    failures = 0
    forbidden = 0
    silent = False
    clock = asyncio.get_running_loop().time
    heard = clock()
    while True:
        try:
            if version and silent and await _went_back(client, kind, namespace, selector, version):
                version = ""
            silent = False
            if not version:
                reduced = bounded.arriving() if bounded is not None else None
                objects, listed = await _listed(client, kind, namespace, selector, reduced)
                if forbidden > 1:
                    await _watched_briefly(client, kind, namespace, selector, listed)
                version, rewound = listed, _older(listed, seen)
                if rewound:
                    log.warning(
                        "the API server returned an older list of %s than before, listing again", kind.plural
                    )
                seen = version
                sink.replace(objects, version, rewound=rewound)
                alive()
                forbidden = 0
            lasts = random.randint(*WATCH_SECONDS)
            started = heard = clock()
            async for event in client.watch(
                kind,
                namespace,
                resource_version=version,
                seconds=lasts,
                silence=SILENCE,
                selector=selector,
            ):
                came = _deliver(event, sink) or version
                alive()
                heard = clock()
                forbidden = 0
                if heard - started > ON_TIME:
                    failures = 0
                if _older(came, version):
                    version = ""
                    break
                version = seen = came
            if abs(clock() - started - lasts) > ON_TIME:
                raise Unreachable(f"WATCH {kind.plural}: it was ended before its time")
            alive()
            if bounded is not None and bounded.incomplete:
                version = ""
            failures = 0
            delay = BACKOFF[0]
        except ApiError as error:
            tried(error)
            if refused and error.code == 403:
                delay = REFUSED[min(forbidden, len(REFUSED) - 1)]
                if forbidden == 1:
                    log.warning("%s are skipped, watching them is forbidden: %s", kind.plural, error)
                    version = ""
                    refused()
                forbidden += 1
                await asyncio.sleep(delay * random.uniform(0.8, 1.2))
                continue
            if error.code not in PASSING or failures:
                version = ""
            delay = max(min(error.retry_after or 0, BLIND), BACKOFF[min(failures, len(BACKOFF) - 1)])
            _complain(kind, error, failures)
            failures += 1
        except Unreachable as error:
            tried(error)
            # A silence that was longer than we waited: this process stood still itself, and anything has happened.
            silent = isinstance(error, Silent) and clock() - heard <= SILENCE + ON_TIME
            if not silent:
                version = ""
            delay = BACKOFF[min(failures, len(BACKOFF) - 1)]
            if silent:
                # Normal where nothing changes: no bookmarks come for Events. `_went_back` asks whether it was more.
                log.debug("watching %s again: %s", kind.plural, error)
            else:
                _complain(kind, error, failures)
                failures += 1
        await asyncio.sleep(delay * random.uniform(0.8, 1.2))


async def _watched_briefly(
    client: Client, kind: Kind, namespace: str | None, selector: Mapping[str, str] | None, version: str
) -> None:
    """Raises ApiError if watching is still forbidden: that listing is permitted says nothing about it."""
    async for _ in client.watch(
        kind, namespace, resource_version=version, seconds=1, silence=SILENCE, selector=selector
    ):
        break


async def _listed(
    client: Client,
    kind: Kind,
    namespace: str | None,
    selector: Mapping[str, str] | None,
    reduced: Callable[[Object], Any] | None,
) -> tuple[Iterator[Any], str]:
    """All objects, and the resource version to watch from.

    reduced: what to keep of an object until the list is complete. Without it, all pages but the last are kept
        deflated.
    """
    deflated: list[bytes] = []
    last: list[Object] = []
    arrived: list[Any] = []
    version = ""
    async for page, version in client.pages(kind, namespace, selector=selector):  # noqa: B007 (the last one)
        if reduced:
            arrived.extend(_reduced(page, reduced))
            continue
        if last:
            deflated.append(zlib.compress(json.dumps(last, ensure_ascii=False).encode(), 1))
        last = page
    return iter(arrived) if reduced else _inflated(deflated, last), version


def _reduced(page: list[Object], reduced: Callable[[Object], Any]) -> Iterator[Any]:
    for obj in page:
        try:
            kept = reduced(obj)
        except Exception as error:
            skipped(obj, error)
            continue
        if kept is not None:
            yield kept


def _inflated(deflated: list[bytes], last: list[Object]) -> Iterator[Object]:
    """The objects; each page is freed once it is read."""
    deflated.reverse()
    while deflated:
        yield from json.loads(zlib.decompress(deflated.pop()))
    while last:
        yield last.pop(0)


async def _went_back(
    client: Client, kind: Kind, namespace: str | None, selector: Mapping[str, str] | None, version: str
) -> bool:
    """Whether the server's newest version is older than ours; it would then send us no events for a long time."""
    async for _, newest in client.pages(kind, namespace, selector=selector, limit=1):
        return _older(newest, version)
    return False


def _older(one: str, other: str) -> bool:
    """Whether the first resource version is older; they are numbers (guaranteed from Kubernetes 1.35 on, true
    before)."""
    return one.isdecimal() and other.isdecimal() and int(one) < int(other)


def _deliver(event: Object, sink: Sink) -> str:
    """Passes one watch event on; returns its resource version. Raises ApiError for an ERROR event."""
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
    """Logs once for a series of failures, and again if it lasts."""
    if failures in (1, 10) or failures % 100 == 99:
        log.warning("watching %s failed, retrying: %s", kind.plural, error)
