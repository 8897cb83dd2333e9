"""Who holds a Lease, and that one who has lost it knows."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._cluster.logs import VALUES
from kubefoundry_sdk._runtime import lease
from kubefoundry_sdk._runtime.lease import Expiry, Holder, LeaseLost, expired
from support.simulated_time import in_simulated_time
from support.waiting import SECONDS
from support.wire import Asked, Wire, ok, refusal, wire


class Server:
    """Stores one Lease as the API server does: a write on an old version is a conflict. down: answers nothing."""

    def __init__(self) -> None:
        self.stored: dict[str, Any] | None = None
        self.version = 0
        self.down = False

    @property
    def holder(self) -> str | None:
        return self.stored["spec"]["holderIdentity"] if self.stored else None

    def answer(self, asked: Asked) -> web.Response:
        if self.down:
            return refusal(500, "InternalError")
        if asked.method == "GET":
            return ok(self.stored) if self.stored else refusal(404, "NotFound")
        version = (asked.body or {}).get("metadata", {}).get("resourceVersion")
        if self.stored and version != self.stored["metadata"]["resourceVersion"]:
            return refusal(409, "Conflict")
        return ok(self.put(asked.body))

    def put(self, body: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.stored = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return self.stored


def holder(api: Wire, identity: str) -> Holder:
    return Holder(api.client, name="l", namespace="n", identity=identity)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the Lease's clock be the loop's."""
    monkeypatch.setattr(lease, "now", lambda: asyncio.get_running_loop().time())


async def kept(api: Wire, server: Server, then: Callable[[], None]) -> None:
    """Takes the Lease, lets that happen, and keeps it for as long as it may."""
    first = holder(api, "a")
    await first.take()
    then()
    async with asyncio.timeout(SECONDS):
        await first.keep()


@in_simulated_time
async def test_lease_is_lost_when_another_replica_acquires_it() -> None:
    server = Server()

    def taken() -> None:
        assert server.stored is not None
        body = server.stored
        server.put({**body, "spec": {**body["spec"], "holderIdentity": "b", "leaseDurationSeconds": 15}})

    async with wire(server.answer) as api:
        with pytest.raises(LeaseLost, match="lease n/l was acquired by another replica"):
            await kept(api, server, taken)
    assert server.holder == "b"


@in_simulated_time
async def test_lease_is_lost_before_another_may_take_it() -> None:
    server = Server()

    def fails() -> None:
        server.down = True

    async with wire(server.answer) as api:
        loop = asyncio.get_running_loop()
        started = loop.time()
        with pytest.raises(LeaseLost, match="lease n/l could not be renewed in time"):
            await kept(api, server, fails)
        assert loop.time() - started < 2 * lease.DURATION


@in_simulated_time
async def test_request_without_response_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        who = Credentials(f"http://127.0.0.1:{silent.getsockname()[1]}", None, lambda: "")
        async with Client(who, user_agent="test") as client:
            taking = asyncio.create_task(Holder(client, name="l", namespace="n", identity="a").take())
            await asyncio.wait([taking], timeout=2 * lease.RENEW)
            taking.cancel()
            await asyncio.wait([taking])

    [record] = [record for record in caplog.records if record.message == "acquiring lease failed, retrying"]
    assert vars(record)[VALUES] == {"lease": "n/l", "error": "no response within 5 s"}


@in_simulated_time
async def test_lease_is_lost_when_renewed_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process or machine that was frozen: its earlier decisions may be out of date."""
    server, slept = Server(), 0.0
    clock = lease.now
    monkeypatch.setattr(lease, "now", lambda: clock() + slept)

    async with wire(server.answer) as api:
        first = holder(api, "a")
        await first.take()
        assert first.holds
        slept = lease.DURATION - lease.RENEW + 0.1
        assert not first.holds, "before any write, not at the next renewal"
        asked = len(api.asked)

        with pytest.raises(LeaseLost, match="lease n/l could not be renewed in time"):
            async with asyncio.timeout(SECONDS):
                await first.keep()

        assert len(api.asked) == asked
        await first.take()
        assert first.holds


class Denying(Server):
    """A server with a webhook that denies every write of the Lease with this code, while `denies` is set."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__()
        self.code, self.reason, self.denies = code, reason, True
        self.denials = 0
        self.denied_often = asyncio.Event()

    def answer(self, asked: Asked) -> web.Response:
        if self.denies and asked.method != "GET":
            self.denials += 1
            if self.denials == 3:
                self.denied_often.set()
            return refusal(self.code, self.reason, DENIAL)
        return super().answer(asked)


DENIAL = 'admission webhook "leases.example.com" denied the request: no'
DENIALS = pytest.mark.parametrize(
    ("code", "reason"), [(403, "Forbidden"), (404, "NotFound"), (409, "Conflict"), (409, "AlreadyExists")]
)


@DENIALS
@in_simulated_time
async def test_denied_lease_is_reported_and_retried(code: int, reason: str) -> None:
    server = Denying(code, reason)
    async with wire(server.answer) as api:
        first = holder(api, "a")
        loop = asyncio.get_running_loop()
        started = loop.time()
        taking = asyncio.create_task(first.take())
        async with asyncio.timeout(SECONDS):
            await server.denied_often.wait()
        # Between two attempts is the usual time, so no attempt took the denial for a Lease that has changed.
        assert loop.time() - started >= 2 * lease.RETRY
        assert not taking.done()
        assert first.refused == (
            f"lease n/l cannot be held: {DENIAL}; contact the owner of that webhook or policy"
        )
        server.denies = False
        async with asyncio.timeout(SECONDS):
            await taking

        assert server.holder == "a"
    assert first.refused is None


@in_simulated_time
async def test_missing_namespace_is_reported_and_tried_slowly() -> None:
    async with wire(lambda asked: refusal(404, "NotFound", 'namespaces "n" not found')) as api:
        first = holder(api, "a")
        taking = asyncio.create_task(first.take())

        await asyncio.wait([taking], timeout=10 * lease.RETRY)

        taking.cancel()
        await asyncio.wait([taking])
        creations = sum(asked.method == "POST" for asked in api.asked)
    assert 5 <= creations <= 11
    assert first.refused is not None
    assert first.refused.endswith("create namespace n, or set --namespace to the component's own")


@DENIALS
@in_simulated_time
async def test_lease_is_lost_in_time_when_renewals_are_denied(code: int, reason: str) -> None:
    server = Denying(code, reason)
    server.denies = False

    def denied() -> None:
        server.denies = True

    async with wire(server.answer) as api:
        with pytest.raises(LeaseLost, match="lease n/l could not be renewed in time"):
            await kept(api, server, denied)
        # The denial is not taken for another replica's write, so the Lease is not read again.
        assert sum(asked.method == "GET" for asked in api.asked) == 1


@in_simulated_time
async def test_given_back_at_the_end_the_next_one_takes_it_at_once() -> None:
    server = Server()
    async with wire(server.answer) as api:
        first = holder(api, "a")
        await first.take()
        keeping = asyncio.create_task(first.keep())
        await asyncio.sleep(0)

        keeping.cancel()
        await asyncio.wait([keeping])

        assert server.holder == ""
        async with asyncio.timeout(SECONDS):
            await holder(api, "b").take()
    assert server.holder == "b"


@in_simulated_time
async def test_lease_is_taken_as_soon_as_it_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RETRY", 2 * lease.DURATION)
    server = Server()
    async with wire(server.answer) as api:
        await holder(api, "a").take()
        begun = asyncio.get_running_loop().time()

        await holder(api, "b").take()

        waited = asyncio.get_running_loop().time() - begun
    assert server.holder == "b"
    assert lease.DURATION <= waited <= lease.DURATION + 1


@in_simulated_time
async def test_lease_is_retaken_by_its_own_replica_alone() -> None:
    server = Server()
    async with wire(server.answer) as api:
        await holder(api, "a").take()
        again = holder(api, "a")
        async with asyncio.timeout(SECONDS):
            await again.take()
        keeping = asyncio.create_task(again.keep())

        waiting = asyncio.create_task(holder(api, "b").take())
        await asyncio.wait(
            [waiting, keeping], timeout=2 * lease.DURATION, return_when=asyncio.FIRST_COMPLETED
        )

        assert not waiting.done()
        assert server.holder == "a"
        for task in (waiting, keeping):
            task.cancel()


def test_age_counts_from_the_last_change_that_was_seen() -> None:
    now = 100.0
    seen = Expiry(lambda: now)

    assert seen.see("1") == 0.0
    now = 112.0
    assert seen.see("1") == 12.0
    assert seen.see("2") == 0.0


@pytest.mark.parametrize(
    ("spec", "age", "over"),
    [
        pytest.param(None, 0.0, True, id="absent"),
        pytest.param({"holderIdentity": "", "leaseDurationSeconds": 15}, 0.0, True, id="released"),
        pytest.param({"holderIdentity": "a", "leaseDurationSeconds": 15}, 15.0, False, id="held"),
        pytest.param({"holderIdentity": "a", "leaseDurationSeconds": 15}, 15.1, True, id="not renewed"),
        pytest.param({"holderIdentity": "a"}, 16.0, True, id="not renewed, the usual time"),
    ],
)
def test_when_it_is_over(spec: dict[str, Any] | None, age: float, over: bool) -> None:
    assert expired({"spec": spec} if spec is not None else None, age) is over
