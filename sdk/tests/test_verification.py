"""Verification of an endpoint by real HTTP: the verdict on each response, and the times of the requests."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider.contract import Deployment, Endpoint
from kubefoundry_sdk._provider.health import verification
from kubefoundry_sdk._provider.health.models_endpoint import (
    NoModels,
    address,
    directly,
    models,
)
from kubefoundry_sdk._provider.health.verification import LISTED, LONGEST, Verification, listed_names
from kubefoundry_sdk._runtime.backoff import Backoff
from kubefoundry_sdk._runtime.store import Key
from kubefoundry_sdk._runtime.supervision import Work
from support.waiting import SECONDS
from support.wire import Asked, ok, wire

ENDPOINT = Endpoint("m", 8000)
SPEC = {"model": {"id": "org/model"}, "engine": {"type": "vllm"}}
NOT_ASKED = "its endpoint m:8000 has not been checked yet"


class Engine:
    """An OpenAI-style server. `answer` is its current response; `asked` counts the requests."""

    def __init__(self, *served: str) -> None:
        self.asked = 0
        self.answer: Callable[[], web.Response] = lambda: listing(*served)
        self.root = ""
        self.port = 0

    async def handle(self, request: web.Request) -> web.Response:
        self.asked += 1
        return self.answer()


def listing(*served: str) -> web.Response:
    return web.json_response({"object": "list", "data": [{"id": name} for name in served]})


@asynccontextmanager
async def serving(engine: Engine) -> AsyncIterator[Engine]:
    app = web.Application()
    app.router.add_get("/v1/models", engine.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    [(_, port)] = runner.addresses
    engine.root, engine.port = f"http://127.0.0.1:{port}", port
    try:
        yield engine
    finally:
        await runner.cleanup()


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    async with serving(Engine("model")) as started:
        yield started


def service(**spec: Any) -> Object:
    return {"metadata": {"name": "m", "namespace": "n"}, "spec": spec}


SELECTOR = {"app": "m"}


@pytest.mark.parametrize(
    ("spec", "reported"),
    [
        ({"type": "ExternalName", "externalName": "metadata.internal"}, "is of type ExternalName"),
        ({"type": "ExternalName", "clusterIP": "127.0.0.1", "selector": SELECTOR}, "is of type ExternalName"),
        ({"type": "ClusterIP", "clusterIP": "127.0.0.1"}, "selects no pods"),
        ({"type": "ClusterIP", "clusterIP": "127.0.0.1", "selector": {}}, "selects no pods"),
        ({"type": "ClusterIP", "clusterIP": "None", "selector": SELECTOR}, "has no cluster IP"),
        ({"selector": SELECTOR}, "has no cluster IP"),
        ({}, "selects no pods"),
    ],
)
async def test_verification_ignores_service_that_leads_elsewhere(
    engine: Engine, spec: dict[str, Any], reported: str
) -> None:
    async with wire(lambda asked: ok(service(**spec))) as server:
        with pytest.raises(NoModels, match=f"^Service n/m {reported}"):
            await directly(server.client)("n", Endpoint("m", engine.port))

    assert engine.asked == 0


async def test_verification_uses_the_address_of_the_service(engine: Engine) -> None:
    service_ = service(type="ClusterIP", clusterIP="127.0.0.1", selector=SELECTOR)
    asked_for: list[str] = []

    def answer(asked: Asked) -> web.Response:
        asked_for.append(asked.path)
        return ok(service_)

    async with wire(answer) as server:
        assert await directly(server.client)("n", Endpoint("m", engine.port)) == {"model"}

    assert asked_for == ["/api/v1/namespaces/n/services/m"]
    assert engine.asked == 1
    assert address(service(clusterIP="fd00::1", selector=SELECTOR)) == "[fd00::1]"


@given(st.sets(st.text(max_size=1000), max_size=20))
def test_what_an_endpoint_lists_is_reported_in_few_words(listed: set[str]) -> None:
    reported = listed_names(listed)

    assert len(reported) <= (LISTED + 1) * (LONGEST + 2)
    reported.encode()
    if len(listed) > LISTED:
        assert reported.endswith(f", {len(listed) - LISTED} more")


@pytest.mark.parametrize(
    ("answer", "reported"),
    [
        pytest.param(lambda: web.Response(status=503), "answers 503 Service Unavailable", id="not up yet"),
        pytest.param(
            lambda: web.Response(status=302, headers={"Location": "/"}), "answers 302", id="elsewhere"
        ),
        pytest.param(lambda: web.Response(text="<html>"), "does not answer with JSON", id="a page"),
        pytest.param(lambda: web.Response(text="[" * 100_000), "does not answer with JSON", id="too deep"),
        pytest.param(lambda: web.Response(body=b"\xff\xfe\xff"), "does not answer with JSON", id="no text"),
        pytest.param(lambda: web.Response(text=" " * 2_000_000), "answers more than", id="too long"),
        pytest.param(
            lambda: web.Response(
                body=gzip.compress(b" " * 2**20, 1) * 100, headers={"Content-Encoding": "gzip"}
            ),
            "sends a compressed answer",
            id="100 MiB, compressed without having been asked to",
        ),
        pytest.param(
            lambda: web.json_response([]), "does not answer with a list of models", id="another list"
        ),
        pytest.param(
            lambda: web.json_response({"data": 1}), "does not answer with a list of models", id="no list"
        ),
    ],
)
async def test_what_is_no_list_of_models_is_reported(
    engine: Engine, answer: Callable[[], web.Response], reported: str
) -> None:
    engine.answer = answer

    with pytest.raises(NoModels, match=rf"GET {engine.root}/v1/models {reported}"):
        await models(engine.root)


async def test_names_without_end_are_reported_in_a_line(engine: Engine) -> None:
    watched = Watched(engine)
    engine.answer = lambda: listing(*(f"{number:04}{'x' * 400}" for number in range(2000)))

    watched.verdict()
    async with asyncio.timeout(SECONDS):
        await watched.reported.get()

    reported = watched.verdict() or ""
    assert "1995 more" in reported
    assert len(reported) < 4000
    watched.verification.forget(("n", "m"))


async def test_internal_error_is_reported_and_asked_again(engine: Engine) -> None:
    watched = Watched(engine)

    def fails() -> Any:
        raise RecursionError("too deep")

    watched.parse = fails
    watched.verdict()
    async with asyncio.timeout(SECONDS):
        await watched.reported.get()

    assert watched.verdict() == "its endpoint's answer cannot be read: RecursionError"
    watched.verification.forget(("n", "m"))


async def test_verification_reports_endpoint_without_listener(engine: Engine) -> None:
    async with serving(Engine()) as gone:
        root = gone.root

    with pytest.raises(NoModels, match=f"GET {root}/v1/models does not answer"):
        await models(root)


async def test_verification_reads_names_that_the_server_lists(engine: Engine) -> None:
    engine.answer = lambda: web.json_response({"data": [{"id": "a"}, {"id": "b"}, {"no": "id"}, 7]})

    assert await models(engine.root) == {"a", "b"}


class Watched:
    """A Verification whose endpoint is the engine, and the changes that it reported."""

    def __init__(self, engine: Engine) -> None:
        self.reported: asyncio.Queue[Key] = asyncio.Queue()
        self.tasks: set[asyncio.Task[None]] = set()
        self.parse: Callable[[], Any] = lambda: None

        async def ask(namespace: str, endpoint: Endpoint) -> frozenset[str]:
            assert (namespace, endpoint) == ("n", ENDPOINT)
            self.parse()
            return await models(engine.root)

        self.verification = Verification(ask, self._spawn, self.reported.put_nowait, always=False)

    def _spawn(self, work: Work) -> asyncio.Task[None]:
        async def run() -> None:
            await work()

        task = asyncio.get_running_loop().create_task(run())
        self.tasks.add(task)
        return task

    def verdict(
        self,
        generation: int = 1,
        uid: str = "u",
        spec: dict[str, Any] | None = None,
        annotations: dict[str, str] | None = None,
    ) -> str | None:
        typed = ModelDeploymentSpec.model_validate(spec or SPEC)
        deployment = Deployment("m", "n", "md", 1, typed, annotations=annotations or {})
        upstream = {"metadata": {"uid": uid, "generation": generation}}
        return self.verification.verdict(deployment, upstream, ENDPOINT)

    async def settled(self) -> None:
        """Until a verdict has changed."""
        async with asyncio.timeout(SECONDS):
            assert await self.reported.get() == ("n", "m")

    async def idle(self) -> None:
        """Until nothing is asked any more."""
        async with asyncio.timeout(SECONDS):
            await asyncio.gather(*self.tasks)


@pytest.fixture
async def watched(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    monkeypatch.setattr(verification, "DELAYS", Backoff(0.01, 60.0))
    watch = Watched(engine)
    yield watch
    for task in watch.tasks:
        task.cancel()


async def test_verification_requests_a_listed_model_once(engine: Engine, watched: Watched) -> None:
    assert watched.verdict() == NOT_ASKED

    await watched.settled()

    assert watched.verdict() is None
    await watched.idle()
    assert engine.asked == 1


async def test_verification_repeats_until_the_model_is_listed(engine: Engine, watched: Watched) -> None:
    engine.answer = lambda: listing("other", "another")
    watched.verdict()
    await watched.settled()
    assert watched.verdict() == (
        "its endpoint m:8000 lists another, other, not model; correct model.servedName or wait for the rollout"
    )

    engine.answer = lambda: web.Response(status=503)
    await watched.settled()
    assert "answers 503 Service Unavailable; look at its Service, the pods behind it" in (
        watched.verdict() or ""
    )

    engine.answer = lambda: listing("model", "other")
    await watched.settled()
    assert watched.verdict() is None


@pytest.mark.parametrize(("status", "named"), [(401, "401 Unauthorized"), (403, "403 Forbidden")])
async def test_server_with_api_key_is_verified_with_a_note(
    engine: Engine, watched: Watched, status: int, named: str
) -> None:
    engine.answer = lambda: web.Response(status=status)
    watched.verdict()
    await watched.settled()

    assert watched.verdict() is None
    assert watched.verification.note(("n", "m")) == (
        f"GET {engine.root}/v1/models answers {named} without an API key: a server answers, but it was not verified "
        "that it lists the model"
    )
    await watched.idle()
    assert engine.asked == 1

    # The note belongs to the answer: the key was removed with the next generation.
    engine.answer = lambda: listing("model")
    assert watched.verdict(generation=2) is None
    await watched.settled()
    assert watched.verification.note(("n", "m")) == ""


async def test_answer_cannot_be_verified_without_the_api_key(engine: Engine, watched: Watched) -> None:
    engine.answer = lambda: web.Response(status=401)
    annotations = {"kubefoundry.ai/verify-endpoint": "answer"}
    watched.verdict(annotations=annotations)
    await watched.settled()

    reported = watched.verdict(annotations=annotations) or ""
    assert (
        "answers 401 Unauthorized without an API key, so no token can be requested: remove the key"
        in reported
    )
    assert "network policies" not in reported


@pytest.mark.parametrize("count", [1, 10_000])
async def test_verification_message_is_short_for_a_megabyte_of_names(
    engine: Engine, watched: Watched, count: int
) -> None:
    engine.answer = lambda: listing(
        *(f"{number:06}" * (500_000 // count // 6 + 1) for number in range(count))
    )
    watched.verdict()

    await watched.settled()

    reported = watched.verdict() or ""
    assert "its endpoint m:8000 lists 000000" in reported
    assert len(reported) < (LISTED + 2) * LONGEST


async def test_verification_compares_the_served_name(engine: Engine, watched: Watched) -> None:
    engine.answer = lambda: listing("short")
    spec = {**SPEC, "model": {"id": "org/model", "servedName": "short"}}

    watched.verdict(spec=spec)
    await watched.settled()

    assert watched.verdict(spec=spec) is None


async def test_verification_accepts_any_name_for_unnamed_model(engine: Engine, watched: Watched) -> None:
    spec = {"model": {"source": "custom"}, "engine": {"type": "vllm"}, "image": "i"}
    engine.answer = listing
    watched.verdict(spec=spec)
    await watched.settled()
    assert "lists no model" in (watched.verdict(spec=spec) or "")

    engine.answer = lambda: listing("whatever")
    await watched.settled()

    assert watched.verdict(spec=spec) is None


async def test_old_verdict_stays_while_a_change_is_verified(engine: Engine, watched: Watched) -> None:
    watched.verdict()
    await watched.settled()

    assert watched.verdict(generation=2) is None

    await watched.idle()
    assert engine.asked == 2
    assert watched.reported.empty()


async def test_verified_endpoint_has_time_to_fail_after_a_change(engine: Engine, watched: Watched) -> None:
    watched.verdict()
    await watched.settled()
    engine.answer = lambda: web.Response(status=503)

    assert watched.verdict(generation=2) is None
    await watched.settled()

    assert engine.asked == 1 + verification.PATIENCE
    assert "answers 503" in (watched.verdict(generation=2) or "")


async def test_recreated_object_starts_unverified(engine: Engine, watched: Watched) -> None:
    watched.verdict()
    await watched.settled()

    assert watched.verdict(uid="new") == NOT_ASKED


async def test_verification_of_a_forgotten_endpoint_is_cancelled(engine: Engine, watched: Watched) -> None:
    engine.answer = lambda: listing("other")
    watched.verdict()
    await watched.settled()

    watched.verification.forget(("n", "m"))

    [task] = watched.tasks
    with pytest.raises(asyncio.CancelledError):
        await task
    assert engine.asked == 1


@pytest.mark.parametrize(("always", "annotation", "expected"), [
    (False, None, False),
    (False, "true", True),
    (False, "false", False),
    (True, None, True),
])  # fmt: skip
def test_verification_is_requested_by_flag_or_annotation(
    always: bool, annotation: str | None, expected: bool
) -> None:
    async def nobody(namespace: str, endpoint: Endpoint) -> frozenset[str]:
        raise AssertionError("nothing is asked")

    verification = Verification(nobody, lambda work: None, lambda key: None, always=always)
    annotations = {"kubefoundry.ai/verify-endpoint": annotation} if annotation else None

    assert verification.is_requested({"metadata": {"annotations": annotations}}) is expected
