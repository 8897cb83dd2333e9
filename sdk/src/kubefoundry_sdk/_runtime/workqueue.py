"""A keyed work queue. Only one worker reconciles a key at a time; changes meanwhile cause one more reconcile.

Namespaces take turns (`fair_queue.py`), so that one tenant's objects do not delay everybody else's. For the same
reason, only the namespace with more keys pauses after a reconcile, and a worker that waits for a key takes no room.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from typing import Final

from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.errors import ApiError, Fenced, Repeated, Unreachable
from kubefoundry_sdk._cluster.retry import requested
from kubefoundry_sdk._runtime import backoff, metrics, traces
from kubefoundry_sdk._runtime.fair_queue import FairQueue
from kubefoundry_sdk._runtime.store import Key

log = logging.getLogger(__name__)

HOLD: Final = 6.0
"""The most seconds after a failure in which events cause no new reconcile. An upstream operator may cause ten events
a second, and each reconcile would send the refused write again."""

LASTING: Final = 6
"""Failures in a row, over some 6 s, after which an error that may pass is reported like a refusal."""

CONFLICTS: Final = 3
"""Conflicts in a row that are logged at debug level only: another client was quicker."""

Reconcile = Callable[[Key], Awaitable[float | None]]
"""Brings one key up to date. Returns the seconds after which to reconcile again, or None."""

Failed = Callable[[Key, Exception], None]
"""Called after a failure that no status may show: the API server's refusal, from the second in a row on (a server
that has just started refuses requests that it accepts a moment later), a write that repeats itself, a webhook that
keeps failing or denying, or an internal error (any exception that is not about the API server)."""


def _nobody(key: Key, error: Exception) -> None:
    pass


def _no_pause(taken: float) -> float:
    return 0.0


class WorkQueue:
    """Keys to reconcile, each by one worker at a time.

    Args:
        label: The queue's name in metrics (a provider's or component's name).
        reconcile: Reconciles a key.
        room: Waited for and held by each reconcile, however many workers there are.
        pause: Returns the seconds for which the other keys of a namespace wait after a reconcile that took so many
            seconds. Called only if the namespace has other keys in the queue.
        failed: See Failed.
    """

    def __init__(
        self,
        label: str,
        reconcile: Reconcile,
        *,
        room: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
        pause: Callable[[float], float] = _no_pause,
        failed: Failed = _nobody,
    ) -> None:
        self._label = label
        self._failed = failed
        self._room = room
        self._pause = pause
        self._reconcile = reconcile
        self._ready: FairQueue[Key] = FairQueue()
        self._dirty: dict[Key, float] = {}
        self._busy: dict[Key, float] = {}
        """Waiting and running keys, each with the time since when."""
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._failures: dict[Key, int] = {}
        self._blocked_until: dict[Key, float] = {}
        self._paused: dict[str, asyncio.TimerHandle] = {}
        """The ends of pauses, by namespace."""
        self._has_next = asyncio.Event()
        """Set while a key of a namespace that does not pause is waiting."""
        self._taking = asyncio.Lock()
        for kind in metrics.ERROR_TYPES:
            metrics.ERRORS.labels(label, kind)
        self._adds = metrics.ADDS.labels(label)
        self._waits = metrics.WAITS.labels(label)
        self._successes = metrics.RESULTS.labels(label, "success")
        self._errors = metrics.RESULTS.labels(label, "error")
        self._requeued = metrics.RESULTS.labels(label, "requeue_after")
        metrics.PENDING.labels(label).set_function(lambda: len(self._dirty.keys() | self._busy.keys()))
        metrics.DEPTH.labels(label).set_function(lambda: len(self._ready))
        metrics.UNFINISHED.labels(label).set_function(lambda: sum(self._running()))
        metrics.LONGEST.labels(label).set_function(lambda: max(self._running(), default=0.0))

    def add(self, key: Key) -> None:
        """Reconcile the key now. A key that is waiting already is not added again.

        A key that has just failed waits for a Retry-After first, and for its delay up to `HOLD` seconds.
        """
        if key in self._dirty:
            return
        left = self._left(key)
        if left > 0:
            self.add_after(key, left)
            return
        self._dirty[key] = time.perf_counter()
        if key not in self._busy:
            self._adds.inc()
            self._ready.append(key[0], key)
            self._update()

    def add_after(self, key: Key, delay: float) -> None:
        """Reconcile the key in `delay` seconds, or earlier if that is already requested."""
        due = asyncio.get_running_loop().time() + delay
        pending = self._timers.get(key)
        if pending and not pending.cancelled():
            if pending.when() <= due:
                return
            pending.cancel()
        self._timers[key] = asyncio.get_running_loop().call_at(due, self._timer_fired, key)

    async def run(self, workers: int) -> None:
        """Run the workers until cancelled. A later call resumes the remaining work."""
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work())

    def _running(self) -> list[float]:
        """Return the seconds that each running reconcile has taken."""
        now = time.perf_counter()
        return [now - since for since in self._busy.values()]

    def _timer_fired(self, key: Key) -> None:
        del self._timers[key]
        self.add(key)

    def _left(self, key: Key) -> float:
        """Return the seconds for which the key has to wait after a failure."""
        left = self._blocked_until.get(key, 0.0) - asyncio.get_running_loop().time()
        if left <= 0:
            self._blocked_until.pop(key, None)
        return left

    async def _work(self) -> None:
        while True:
            async with AsyncExitStack() as room:
                async with self._taking:
                    await self._has_next.wait()
                    await room.enter_async_context(self._room())
                    # The namespace may have begun to pause while this worker waited for room.
                    key = self._take() if self._has_next.is_set() else None
                if key:
                    with logs.about(*key), traces.reconcile(self._label):
                        await self._next(key)

    def _take(self) -> Key:
        """Remove the next key from the queue, and return it as running."""
        key = self._ready.popleft(skip=self._paused)
        self._update()
        now = self._busy[key] = time.perf_counter()
        self._waits.observe(now - self._dirty.pop(key, now))
        return key

    def _update(self) -> None:
        if self._ready.next_namespace(skip=self._paused) is None:
            self._has_next.clear()
        else:
            self._has_next.set()

    def _begin_pause(self, namespace: str, taken: float) -> None:
        """Let the other keys of the namespace wait, for the longest of its overlapping pauses."""
        if not self._ready.has_items(namespace) or not (seconds := self._pause(taken)):
            return
        loop = asyncio.get_running_loop()
        end, pending = loop.time() + seconds, self._paused.get(namespace)
        if pending:
            if pending.when() >= end:
                return
            pending.cancel()
        self._paused[namespace] = loop.call_at(end, self._end_pause, namespace)
        self._update()

    def _end_pause(self, namespace: str) -> None:
        del self._paused[namespace]
        self._update()

    async def _next(self, key: Key) -> None:
        begun = asyncio.get_running_loop().time()
        try:
            await self._turn(key)
        except asyncio.CancelledError:
            # The next run of this queue has to repeat it.
            self._dirty[key] = time.perf_counter()
            raise
        except Exception:
            log.exception("internal error", extra=logs.values(retry=backoff.OBJECT.last))
            self.add_after(key, backoff.OBJECT.last)
        finally:
            self._busy.pop(key, None)
            self._begin_pause(key[0], asyncio.get_running_loop().time() - begun)
            if self._dirty.pop(key, None) is not None:
                self.add(key)

    async def _turn(self, key: Key) -> None:
        start = time.perf_counter()
        try:
            again = await self._reconcile(key)
        except ApiError as error:
            # A conflict may mean that the object has changed, and its watch event is on the way, but not always.
            self._retry(key, error, "conflict" if error.conflict else "api")
            if _is_notable(error, self._failures[key]):
                self._failed(key, error)
        except Fenced:
            # The task that runs this queue is about to be cancelled, because the Lease is lost.
            self.add_after(key, backoff.OBJECT.first)
        except Unreachable as error:
            self._retry(key, error, "unreachable")
        except Exception as error:
            log.exception("internal error")
            self._retry(key, error, "internal")
            self._failed(key, error)
        else:
            self._failures.pop(key, None)
            self._blocked_until.pop(key, None)
            (self._successes if again is None else self._requeued).inc()
            if again is not None:
                self.add_after(key, again)
        finally:
            metrics.RECONCILIATIONS.labels(self._label).observe(time.perf_counter() - start)

    def _retry(self, key: Key, error: Exception, kind: str) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = backoff.delay(failures, error)
        # The event after a conflict causes a reconcile at once.
        hold = max(requested(error), 0.0 if kind == "conflict" else min(delay, HOLD))
        self._blocked_until[key] = asyncio.get_running_loop().time() + hold
        metrics.ERRORS.labels(self._label, kind).inc()
        self._errors.inc()
        traces.fail(error, kind)
        is_quiet = (kind == "conflict" and failures <= CONFLICTS) or isinstance(error, Repeated)
        level = logging.DEBUG if is_quiet else logging.WARNING
        log.log(level, "reconcile failed", extra=logs.values(error=str(error), retry=round(delay, 1)))
        self.add_after(key, delay)


def _is_notable(error: ApiError, failures: int) -> bool:
    """Check whether an error is worth an Event after so many failures in a row.

    Errors of an API server that is unavailable or busy are not, because the server would refuse the Event, too.
    """
    if error.rejected:
        return failures > 1
    return isinstance(error, Repeated) or (failures >= LASTING and (error.denied or error.code == 500))
