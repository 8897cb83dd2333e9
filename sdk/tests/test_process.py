"""A process: a start that cannot succeed is reported in one line; one that runs outlives its faults and its Lease."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._cluster.errors import Fenced
from kubefoundry_sdk._runtime import lease, options, start, supervision
from kubefoundry_sdk._runtime.backoff import Backoff
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk._runtime.start import CannotStart
from kubefoundry_sdk._runtime.store import Key
from support.simulated_time import in_simulated_time
from support.waiting import SECONDS
from support.wire import Asked, Wire, ok, refusal, wire

NOBODY = Credentials("http://nobody.invalid", None, lambda: None)


async def nothing(key: Key) -> None:
    """Has nothing to do for any key."""


async def test_port_in_use_ends_the_process_and_its_tasks() -> None:
    # what earlier tests have left is theirs
    gc.collect()
    with socket.socket() as taken, warnings.catch_warnings(record=True) as received:
        warnings.simplefilter("always")
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        chosen = options.parser("t", "").parse_args([f"--health-port={port}", "--metrics-port=0"])
        process = Process("t", chosen, Client(NOBODY, user_agent="t"))
        process.queue("t", nothing, of=process.watch(MODEL_DEPLOYMENTS))

        with pytest.raises(CannotStart, match=f"a port cannot be opened: .*{port}"):
            await process.run(asyncio.Event())
        del process
        gc.collect()

    assert [str(warning.message) for warning in received] == []


@pytest.mark.parametrize("verb", ["GET", "POST", "PUT"])
async def test_forbidden_lease_makes_a_process_unready(verb: str, quick: None) -> None:
    server = Server()
    denied = True

    def answer(asked: Asked) -> web.Response:
        if "leases" in asked.path and asked.method == verb and denied:
            return refusal(403, "Forbidden", 'leases "t" is forbidden')
        return server.answer(asked)

    if verb == "PUT":
        server.lease = {"metadata": {"name": "t", "resourceVersion": "1"}, "spec": {"holderIdentity": ""}}
    async with (
        wire(answer) as api,
        running(api, "--leader-elect=true", "--namespace=ml", set_up=lambda it: None) as begun,
        asyncio.timeout(SECONDS),
    ):
        answered = await refused(begun)
        denied = False
        await begun.leading.wait()
        healed = begun._ready()

    assert answered == (
        'lease ml/t cannot be held: leases "t" is forbidden; grant this in namespace ml, '
        "or set --namespace to the component's own"
    )
    assert healed is None


async def refused(begun: Process) -> str:
    """Return the answer of /readyz once it is about the Lease."""
    while True:
        if (problem := begun._ready()) and problem.startswith("lease"):
            return problem
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("flags", "file", "host", "expected"),
    [
        ([], "ml-platform\n", "10.0.0.1", "ml-platform"),
        (["--namespace=other"], "ml-platform", "10.0.0.1", "other"),
        ([], None, "10.0.0.1", "kubefoundry-system"),
        ([], "", "10.0.0.1", "kubefoundry-system"),
        ([], "ml-platform", None, "kubefoundry-system"),
        (["--kubeconfig=k"], "ml-platform", "10.0.0.1", "kubefoundry-system"),
    ],
)
def test_namespace_is_that_of_the_service_account(
    flags: list[str],
    file: str | None,
    host: str | None,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBEFOUNDRY_SERVICE_ACCOUNT_DIR", str(tmp_path))
    if file is not None:
        (tmp_path / "namespace").write_text(file)
    if host:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    else:
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    chosen = options.parser("t", "").parse_args(flags)

    assert Process("t", chosen, Client(NOBODY, user_agent="t")).namespace == expected


MODEL: dict[str, Any] = {"apiVersion": "x", "kind": "x", "metadata": {"name": "m", "namespace": "n"}}


class Server:
    """Answers a start's question with one answer after the other, the last one again and again; keeps one Lease."""

    def __init__(self, *answers: Callable[[], web.Response]) -> None:
        self.answers = list(answers) or [ok]
        self.lease: dict[str, Any] | None = None
        self.down = False
        self.writes = 0

    def answer(self, asked: Asked) -> web.Response:
        if self.down:
            return refusal(500, "InternalError")
        if "leases" in asked.path:
            if asked.method == "GET":
                return ok(self.lease) if self.lease else refusal(404, "NotFound")
            self.writes += 1
            meta = {**asked.body["metadata"], "resourceVersion": str(self.writes)}
            self.lease = {**asked.body, "metadata": meta}
            return ok(self.lease)
        if asked.path == "/apis/kubefoundry.ai/v1alpha1":
            return (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])()
        return ok(MODEL)


@asynccontextmanager
async def running(api: Wire, *flags: str, set_up: Callable[[Process], None]) -> AsyncIterator[Process]:
    chosen = options.parser("t", "").parse_args(["--health-port=0", "--metrics-port=0", *flags])
    begun, stop = Process("t", chosen, api.client), asyncio.Event()
    set_up(begun)
    task = asyncio.create_task(begun.run(stop))
    try:
        yield begun
    finally:
        stop.set()
        async with asyncio.timeout(SECONDS):
            await task


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("DURATION", 2.0), ("RENEW", 0.6), ("RETRY", 0.1)):
        monkeypatch.setattr(lease, name, seconds)
    monkeypatch.setattr(lease, "now", lambda: asyncio.get_running_loop().time())
    monkeypatch.setattr(start, "WAITS", (0.001,))
    monkeypatch.setattr(supervision, "PAUSES", Backoff(0.001, 0.001))


async def test_process_waits_for_api_server_that_starts(
    quick: None, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(
        lambda: web.Response(text="<html>", status=502),
        lambda: web.Response(text="<html>"),
        lambda: refusal(403, "Forbidden"),
        lambda: refusal(401, "Unauthorized"),
        lambda: refusal(404, "NotFound"),
        lambda: refusal(503, "ServiceUnavailable"),
        ok,
    )
    async with wire(server.answer) as api, running(api, set_up=lambda it: None) as begun:
        assert begun._ready() == "the API server has not answered yet"
        async with asyncio.timeout(SECONDS):
            await begun.leading.wait()
        assert begun._ready() is None

    assert "cannot start yet, waiting" in caplog.text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            lambda: refusal(404, "NotFound"),
            "does not serve kubefoundry.ai/v1alpha1: install KubeFoundry's CRDs first",
        ),
        (
            lambda: refusal(401, "Unauthorized", "Unauthorized"),
            "the API server refused the request: Unauthorized",
        ),
    ],
    ids=["no CRDs", "a bad token"],
)
async def test_process_ends_when_api_server_rejects_it(
    answer: Callable[[], web.Response], words: str, quick: None
) -> None:
    chosen = options.parser("t", "").parse_args(["--health-port=0", "--metrics-port=0"])
    async with wire(Server(answer).answer) as api:
        with pytest.raises(CannotStart) as raised:
            await Process("t", chosen, api.client).run(asyncio.Event())

    assert words in str(raised.value)


async def test_process_stops_while_it_waits_for_api_server(quick: None) -> None:
    server = Server(lambda: refusal(503, "ServiceUnavailable"))
    async with wire(server.answer) as api:
        async with running(api, set_up=lambda it: None) as begun:
            await asyncio.sleep(0)
        assert not begun.leading.is_set()


async def test_background_work_that_fails_ends_nothing_else(quick: None) -> None:
    begun = 0
    beside, again = asyncio.Event(), asyncio.Event()

    async def fails() -> None:
        nonlocal begun
        begun += 1
        if begun == 3:
            again.set()
        raise RecursionError("too deep")

    async def works() -> None:
        await again.wait()
        beside.set()

    def set_up(it: Process) -> None:
        it.background("fails", fails)
        it.background("works", works)

    async with wire(Server().answer) as api, running(api, set_up=set_up):
        async with asyncio.timeout(SECONDS):
            await beside.wait()


@in_simulated_time
async def test_leader_without_lease_writes_nothing_and_retries(quick: None) -> None:
    """Its work is cut short and restarted; the process stays."""
    server = Server()
    begun: asyncio.Queue[str] = asyncio.Queue()
    refused: list[BaseException] = []

    def set_up(it: Process) -> None:
        async def work() -> None:
            begun.put_nowait("begun")
            try:
                await asyncio.Event().wait()
            finally:
                try:
                    await it.client.apply(MODEL_DEPLOYMENTS, MODEL, manager="me")
                except Fenced as error:
                    refused.append(error)
                begun.put_nowait("cut short")

        it.while_leading("work", work)

    async with (
        wire(server.answer) as api,
        asyncio.timeout(SECONDS),
        running(api, "--leader-elect", set_up=set_up) as it,
    ):
        with pytest.raises(Fenced):
            await it.client.apply(MODEL_DEPLOYMENTS, MODEL, manager="me")
        assert await begun.get() == "begun"
        await it.client.apply(MODEL_DEPLOYMENTS, MODEL, manager="me")
        server.down = True
        assert await begun.get() == "cut short"
        assert len(refused) == 1 and not it.leading.is_set()
        server.down = False
        assert await begun.get() == "begun"
        await it.client.apply(MODEL_DEPLOYMENTS, MODEL, manager="me")


@in_simulated_time
async def test_leader_that_was_suspended_writes_nothing(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it has looked at its Lease again, as after SIGSTOP and SIGCONT or the machine's sleep."""
    clock, slept = lease.now, 0.0
    monkeypatch.setattr(lease, "now", lambda: clock() + slept)
    server = Server()

    async with (
        wire(server.answer) as api,
        asyncio.timeout(SECONDS),
        running(api, "--leader-elect", set_up=lambda it: None) as it,
    ):
        await it.leading.wait()
        slept = lease.DURATION
        for write in (
            it.client.apply(MODEL_DEPLOYMENTS, MODEL, manager="me"),
            it.client.apply_status(MODEL_DEPLOYMENTS, MODEL, manager="me"),
            it.client.create(MODEL_DEPLOYMENTS, MODEL, manager="me"),
            it.client.replace(MODEL_DEPLOYMENTS, MODEL, manager="me"),
            it.client.json_patch(MODEL_DEPLOYMENTS, "m", "n", [], manager="me"),
            it.client.delete(MODEL_DEPLOYMENTS, "m", "n", uid="u"),
        ):
            with pytest.raises(Fenced):
                await write
        await it.client.get(MODEL_DEPLOYMENTS, "m", "n")

    assert {asked.method for asked in api.asked if "modeldeployments" in asked.path} == {"GET"}
