"""Keys get their turns one after the other."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from kubefoundry_sdk._runtime.paced_queue import RATE, PacedQueue
from kubefoundry_sdk._runtime.store import Key
from support.waiting import SECONDS


async def test_each_key_once_in_order_and_never_two_at_once() -> None:
    loop = asyncio.get_running_loop()
    released: list[tuple[Key, float]] = []
    done = asyncio.Event()

    def release(key: Key) -> None:
        released.append((key, loop.time()))
        if len(released) == 3:
            done.set()

    spread = PacedQueue(release)
    spread.add([("n", "a"), ("n", "b"), ("n", "a")])
    spread.add([("n", "c"), ("n", "b")])
    assert ("n", "c") in spread
    running = asyncio.ensure_future(spread.run())
    await asyncio.wait_for(done.wait(), SECONDS)
    running.cancel()

    assert [name for (_, name), _ in released] == ["a", "b", "c"]
    assert ("n", "c") not in spread
    times = [moment for _, moment in released]
    assert all(later - earlier >= 0.9 / RATE for earlier, later in pairwise(times))


async def test_paced_queue_releases_key_when_empty() -> None:
    released: asyncio.Queue[Key] = asyncio.Queue()
    spread = PacedQueue(released.put_nowait)
    running = asyncio.ensure_future(spread.run())

    for name in ("a", "a", "b"):
        spread.add([("n", name)])
        assert await asyncio.wait_for(released.get(), SECONDS) == ("n", name)

    running.cancel()
