"""Keeps a sink equal to a kind on the API server: list, watch, and list again after a gap.

An object that the sink cannot read is skipped (`skipped`), so no content stops the watch.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Silent, Unreachable
from kubefoundry_sdk._cluster.listing import complete_list
from kubefoundry_sdk._cluster.retry import spread, wait
from kubefoundry_sdk._cluster.skipped import skipped

log = logging.getLogger(__name__)

BACKOFF: Final = (0.1, 0.2, 0.5, 1.0, 1.0, 2.0)
"""Seconds between attempts while the server does not answer; short, so that a restarted one is noticed quickly
(docs/event-sources.md: kopf's default of up to 21 s left objects unattended for 7.5 s)."""

WATCH_SECONDS: Final = (480, 600)
"""Range of the seconds for which the server is asked to keep a watch open, so that watches do not all end
together."""

ON_TIME: Final = 5.0
"""A watch that ends within this many seconds of its requested end counts as ended on time."""

PASSING: Final = (429, 500)
"""Status codes of a busy server. The first such refusal causes no new list, which would make the server busier."""

REFUSED: Final = (1.0, 5.0, 60.0)
"""Seconds between attempts if `refused` is given and watching is forbidden: a server that has just started has not
loaded its roles yet, and a missing permission may be granted later."""

BLIND: Final = 60.0
"""The longest wait between attempts in seconds, even if the server asks for more: no change is seen meanwhile."""

SILENCE: Final = 100.0
"""Seconds without a byte after which a watch counts as dead. The API server sends a bookmark every minute if it knows
of a newer version. Not every etcd reports one, and there are no bookmarks for Events (seen with Kubernetes 1.36)."""


class Sink(Protocol):
    """The target of the objects."""

    def replace(self, objects: Iterator[Any], resource_version: str, *, rewound: bool) -> None:
        """Take a complete list: of objects, or of the reduced form that `Bounded` returns.

        `rewound` means that the API server's history went back (etcd was restored from a backup), so earlier resource
        versions mean nothing any more.
        """

    def put(self, obj: Object) -> None:
        """Take an added or changed object."""

    def remove(self, obj: Object) -> None:
        """Take the last state of a deleted object."""


class Bounded(Protocol):
    """Limits the memory of the sink's objects."""

    def arriving(self) -> Callable[[Object], Any]:
        """Return a function for one listing that reduces each object as its page arrives; None to leave it out."""

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
    """Keep the sink equal to the kind until cancelled.

    A watch is resumed where it ended in three cases: its time is over, no data came for so long that the connection
    may be dead (after a check with `_went_back`), or a busy server asks for a wait. After any other end, everything
    is listed, because the server may have restarted with etcd's data from a backup. Even if its version is newer, its
    history may not contain the version that we saw. (A restarted server could resume hardly any watch.)

    Deletions during a gap are reported through `replace`. A kind that is not served (404) is retried like a server
    that does not answer.

    Args:
        client: The client.
        kind: The kind.
        sink: Receives the objects.
        namespace: The namespace; None for all.
        selector: `labelSelector` and `fieldSelector` parameters.
        bounded: Bounds the memory of the sink's objects, if tenants control their number and size.
        alive: Called at every sign of life of the watch.
        tried: Called with each error.
        refused: Given for an optional kind; called once watching it is forbidden (403) and stays so. From then on
            the sink is out of date until the next `replace`, which comes once watching is permitted.
    """
    await _Reflection(client, kind, sink, namespace, selector, bounded, alive, tried, refused).run()


@dataclass(slots=True)
class _Reflection:
    """The arguments of `reflect`, and its state."""

    client: Client
    kind: Kind
    sink: Sink
    namespace: str | None
    selector: Mapping[str, str] | None
    bounded: Bounded | None
    alive: Callable[[], None]
    tried: Callable[[Exception], None]
    refused: Callable[[], None] | None
    version: str = ""
    """The resource version to watch from; empty if everything has to be listed first."""
    seen: str = ""
    """The newest resource version that was seen."""
    failures: int = 0
    """Failures in a row."""
    forbidden: int = 0
    """Refusals (403) in a row, if `refused` is given."""
    silent: bool = False
    """Whether the watch ended after a silence so long that the connection may be dead."""
    last_event_at: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    """The time at which the watch was begun, or sent its last event."""

    async def run(self) -> None:
        while True:
            try:
                await self._list_after_gap()
                await self._follow()
                self.failures = 0
                delay = spread(BACKOFF[0])
            except ApiError as error:
                self.tried(error)
                delay = self._after_refusal(error)
            except Unreachable as error:
                self.tried(error)
                delay = self._after_broken_connection(error)
            await asyncio.sleep(delay)

    async def _list_after_gap(self) -> None:
        """Replace the sink's objects, unless the watch can be resumed where it ended."""
        if self.version and self.silent and await self._went_back():
            self.version = ""
        self.silent = False
        if self.version:
            return
        reduced = self.bounded.arriving() if self.bounded is not None else None
        objects, listed = await complete_list(self.client, self.kind, self.namespace, self.selector, reduced)
        if self.forbidden > 1:
            await self._try_watch(listed)
        rewound = _older(listed, self.seen)
        if rewound:
            resource = logs.values(resource=self.kind.plural)
            log.warning("the API server returned an older list than before, listing again", extra=resource)
        self.version = self.seen = listed
        self.sink.replace(objects, listed, rewound=rewound)
        self.alive()
        self.forbidden = 0

    async def _follow(self) -> None:
        """Deliver the events of one watch. Raise Unreachable if it is ended before its time."""
        clock = asyncio.get_running_loop().time
        duration = random.randint(*WATCH_SECONDS)
        started = self.last_event_at = clock()
        async for event in self._watch(self.version, duration):
            version = _deliver(event, self.sink) or self.version
            self.alive()
            self.last_event_at = clock()
            self.forbidden = 0
            if self.last_event_at - started > ON_TIME:
                # A watch that has lasted ends the series of failures, however the watch ends.
                self.failures = 0
            if _older(version, self.version):
                # The server's history went back below an open watch.
                self.version = ""
                break
            self.version = self.seen = version
        if abs(clock() - started - duration) > ON_TIME:
            raise Unreachable(f"WATCH {self.kind.plural}: it was ended before its time")
        self.alive()
        if self.bounded is not None and self.bounded.incomplete:
            self.version = ""

    def _after_refusal(self, error: ApiError) -> float:
        """Choose the next step after an error of the server, and return the seconds until it."""
        if self.refused and error.code == 403:
            delay = wait(REFUSED[min(self.forbidden, len(REFUSED) - 1)], error, BLIND)
            if self.forbidden == 1:
                forbidden = logs.values(resource=self.kind.plural, error=str(error))
                log.warning("objects are skipped, watching them is forbidden", extra=forbidden)
                self.version = ""
                self.refused()
            self.forbidden += 1
            return delay
        if error.code not in PASSING or self.failures:
            self.version = ""
        delay = self._backoff(error)
        _log_failure(self.kind, error, self.failures)
        self.failures += 1
        return delay

    def _after_broken_connection(self, error: Unreachable) -> float:
        """Choose the next step after no response or a broken watch, and return the seconds until it."""
        # After a silence longer than the time-out, this process itself was frozen, and anything may have happened.
        waited = asyncio.get_running_loop().time() - self.last_event_at
        self.silent = isinstance(error, Silent) and waited <= SILENCE + ON_TIME
        delay = self._backoff(error)
        if self.silent:
            # Normal for a kind without changes, as Events have no bookmarks. `_went_back` checks for a restored
            # server.
            log.debug("watching again", extra=logs.values(resource=self.kind.plural, error=str(error)))
            return delay
        self.version = ""
        _log_failure(self.kind, error, self.failures)
        self.failures += 1
        return delay

    def _backoff(self, error: ApiError | Unreachable) -> float:
        return wait(BACKOFF[min(self.failures, len(BACKOFF) - 1)], error, BLIND)

    def _watch(self, version: str, seconds: int) -> AsyncIterator[Object]:
        return self.client.watch(
            self.kind,
            self.namespace,
            resource_version=version,
            seconds=seconds,
            silence=SILENCE,
            selector=self.selector,
        )

    async def _try_watch(self, version: str) -> None:
        """Raise ApiError if watching is still forbidden. A permitted list does not show this."""
        async for _ in self._watch(version, 1):
            break

    async def _went_back(self) -> bool:
        """Check whether the server's newest version is older than ours.

        The server would then send us no events for a long time.
        """
        pages = self.client.pages(self.kind, self.namespace, selector=self.selector, limit=1)
        async for _, newest in pages:
            return _older(newest, self.version)
        return False


def _older(version: str, other: str) -> bool:
    """Check whether the first resource version is older.

    They are numbers: guaranteed from Kubernetes 1.35 on, true before.
    """
    return version.isdecimal() and other.isdecimal() and int(version) < int(other)


def _deliver(event: Object, sink: Sink) -> str:
    """Pass one watch event on, and return its resource version. Raise ApiError for an ERROR event."""
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


def _log_failure(kind: Kind, error: Exception, failures: int) -> None:
    """Log once for a series of failures, and again if it lasts."""
    if failures in (1, 10) or failures % 100 == 99:
        log.warning("watching failed, retrying", extra=logs.values(resource=kind.plural, error=str(error)))
