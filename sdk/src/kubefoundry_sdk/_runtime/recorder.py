"""Kubernetes Events about our objects: deduplicated, sent in the background, and dropped if too many are queued."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Literal

from kubefoundry_sdk._api.kinds import EVENTS, Object
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._runtime import wall_clock
from kubefoundry_sdk._runtime.fair_queue import FairQueue

log = logging.getLogger(__name__)

REPEAT: Final = 600.0
"""Seconds within which the same Event about the same object is sent once."""

LAST: Final = 1.0
"""Seconds that a stopping process has to send queued Events: it has 5 for its whole shutdown (contract §6)."""

WAITING: Final = 1000
"""Events that may be queued, because an Event must never hold up a reconcile. Beyond that, the newest Event of the
namespace with the most queued Events is dropped."""

NOTE: Final = 1024
"""Longest note that the API accepts, in bytes (Kubernetes 1.36, pkg/apis/core/validation/events.go)."""


async def _no_wait() -> None:
    return


class Recorder:
    """Queues and sends Events of a component (the reportingController) and its replica (pod name or uid).

    `give_way` is awaited before an Event is sent, while the queue has room.
    """

    def __init__(
        self,
        client: Client,
        *,
        component: str,
        instance: str,
        give_way: Callable[[], Awaitable[None]] = _no_wait,
    ) -> None:
        self._client = client
        self._give_way = give_way
        self._component = component
        self._instance = instance
        self._sent_at: OrderedDict[str, float] = OrderedDict()
        self._waiting: FairQueue[Object] = FairQueue()
        self._not_empty = asyncio.Event()

    def event(self, about: Object, type_: Literal["Normal", "Warning"], reason: str, note: str) -> None:
        """Queue an Event about the object, of which apiVersion, kind and metadata are read."""
        meta = about["metadata"]
        text = _cut(note)
        identity = f"{meta.get('uid')}/{type_}/{reason}/{text}"
        digest = hashlib.sha256(identity.encode(errors="replace")).hexdigest()[:16]
        now = asyncio.get_running_loop().time()
        if now - self._sent_at.get(digest, -REPEAT) < REPEAT:
            return
        self._sent_at[digest] = now
        self._sent_at.move_to_end(digest)
        while len(self._sent_at) > WAITING:
            self._sent_at.popitem(last=False)
        moment = wall_clock.now()
        body: Object = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                # A part of a name must not end with a dash or a dot. The whole name may have 253 characters.
                "name": f"{meta['name'][:200].rstrip('-.')}.{digest}{int(moment.timestamp() * 1e6):x}",
                "namespace": meta.get("namespace", "default"),
            },
            "regarding": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": meta["name"],
                **({"namespace": meta["namespace"]} if meta.get("namespace") else {}),
                "uid": meta.get("uid", ""),
                "resourceVersion": meta.get("resourceVersion", ""),
            },
            "type": type_,
            "reason": reason,
            "action": reason,
            "note": text,
            "eventTime": moment.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "reportingController": f"kubefoundry.ai/{self._component}",
            "reportingInstance": self._instance[:128],
        }
        with logs.about(body["metadata"]["namespace"], meta["name"]):
            logs.read(about)
            level = logging.WARNING if type_ == "Warning" else logging.INFO
            log.log(level, "event", extra=logs.values(reason=reason, note=text))
        self._waiting.append(body["metadata"]["namespace"], body)
        self._not_empty.set()
        if len(self._waiting) > WAITING:
            lost = self._waiting.drop()
            with logs.about(lost["metadata"]["namespace"], lost["regarding"]["name"]):
                log.warning("event dropped", extra=logs.values(reason=lost["reason"], queued=WAITING))

    async def run(self) -> None:
        """Send queued Events until cancelled, and then the rest.

        The rest is sent, because nothing reports these Events again.
        """
        sending: asyncio.Task[None] | None = None
        try:
            while True:
                # Give way before an Event is taken out of the queue, so that a cancellation loses none.
                if len(self._waiting) < WAITING // 2:
                    await self._give_way()
                await self._not_empty.wait()
                sending = asyncio.create_task(self._send(self._next()))
                await asyncio.shield(sending)
        except asyncio.CancelledError:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST):
                    if sending:
                        await sending
                    while self._waiting:
                        await self._send(self._next())
            raise

    def _next(self) -> Object:
        """Remove and return the next Event of the queue."""
        event = self._waiting.popleft()
        if not self._waiting:
            self._not_empty.clear()
        return event

    async def _send(self, body: Object) -> None:
        try:
            await self._client.create(EVENTS, body, manager=self._component)
        except (ApiError, Unreachable) as error:
            # A namespace that is being deleted accepts no events. Neither case is worth a retry.
            with logs.about(body["metadata"]["namespace"], body["regarding"]["name"]):
                log.info("event not sent", extra=logs.values(reason=body["reason"], error=str(error)))


def _cut(note: str) -> str:
    """Return at most NOTE bytes of the note, with an ellipsis at the end if it was cut."""
    raw = note.encode(errors="replace")
    return note if len(raw) <= NOTE else raw[: NOTE - 3].decode(errors="ignore") + "…"
