"""A model is asked for one token, by real HTTP: by the kind of request that it takes, and no more than it needs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider.contract import Deployment, Endpoint
from kubefoundry_sdk._provider.health import completion, verification
from kubefoundry_sdk._provider.health.models_endpoint import KeyRequired, NoModels, models
from kubefoundry_sdk._provider.health.verification import Verification
from kubefoundry_sdk._runtime.backoff import Backoff
from kubefoundry_sdk._runtime.store import Key
from kubefoundry_sdk._runtime.tenant_http import LIMIT
from support.waiting import SECONDS

COMPLETION, CHAT, EMBEDDING = "/v1/completions", "/v1/chat/completions", "/v1/embeddings"
READY_PATH = "/v1/models/org/m/ready"


class Engine:
    """An OpenAI-style server with a status for each path, 404 for others. It records the requests."""

    def __init__(self, statuses: Mapping[str, int], body: str = "{}") -> None:
        self.statuses = dict(statuses)
        self.body = body
        self.asked: list[tuple[str, Any]] = []
        self.root = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append((request.path, await request.json() if request.method == "POST" else None))
        if request.path == "/v1/models":
            return web.json_response({"data": [{"id": "org/m"}]})
        return web.Response(status=self.statuses.get(request.path, 404), text=self.body)


@asynccontextmanager
async def serving(engine: Engine) -> AsyncIterator[Engine]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", engine.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    [(_, port)] = runner.addresses
    engine.root = f"http://127.0.0.1:{port}"
    try:
        yield engine
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("statuses", "asked"),
    [
        ({COMPLETION: 200}, [COMPLETION]),
        ({READY_PATH: 200, COMPLETION: 200}, [COMPLETION]),
        ({COMPLETION: 400, CHAT: 200}, [COMPLETION, CHAT]),
        ({EMBEDDING: 200}, [COMPLETION, CHAT, EMBEDDING]),
    ],
)
async def test_completion_request_fits_the_model(statuses: dict[str, int], asked: list[str]) -> None:
    async with serving(Engine(statuses)) as engine:
        await completion.request_token(engine.root, "org/m")

    assert [path for path, _ in engine.asked] == [READY_PATH, *asked]
    assert {body["model"] for _, body in engine.asked if body} == {"org/m"}
    assert all(body["max_tokens"] == 1 for path, body in engine.asked if path in (COMPLETION, CHAT))


@pytest.mark.parametrize(
    ("statuses", "body", "words", "asked"),
    [
        ({READY_PATH: 503, COMPLETION: 200}, "{}", "/ready answers 503", 1),
        ({COMPLETION: 503, CHAT: 200}, "{}", "is answered by /v1/completions 503", 2),
        ({COMPLETION: 429}, "{}", "/v1/completions 429", 2),
        ({COMPLETION: 302}, "{}", "/v1/completions 302", 2),
        ({}, "{}", "/v1/completions 404, /v1/chat/completions 404, /v1/embeddings 404", 4),
        ({COMPLETION: 200}, "<html>", "does not answer with JSON", 2),
        ({COMPLETION: 200}, "[" * 4096, "does not answer with JSON", 2),
    ],
)
async def test_what_is_no_answer(statuses: dict[str, int], body: str, words: str, asked: int) -> None:
    async with serving(Engine(statuses, body)) as engine:
        with pytest.raises(NoModels, match=r".*") as reported:
            await completion.request_token(engine.root, "org/m")

    assert words in str(reported.value)
    assert len(engine.asked) == asked


@pytest.mark.parametrize("path", [READY_PATH, COMPLETION, CHAT, EMBEDDING])
@pytest.mark.parametrize("status", [401, 403])
async def test_missing_key_is_distinguished(path: str, status: int) -> None:
    async with serving(Engine({path: status})) as engine:
        with pytest.raises(KeyRequired, match=rf"(answers|answered by) {status}$"):
            await completion.request_token(engine.root, "org/m")

    assert engine.asked[-1][0] == path


async def test_completion_response_is_read_up_to_a_limit() -> None:
    async with serving(Engine({COMPLETION: 200}, json.dumps("x" * LIMIT))) as engine:
        with pytest.raises(NoModels, match=f"answers more than {LIMIT} bytes"):
            await completion.request_token(engine.root, "org/m")


async def test_nobody_there() -> None:
    async with serving(Engine({})) as engine:
        root = engine.root
    with pytest.raises(NoModels, match="does not answer"):
        await completion.request_token(root, "org/m")


async def test_listed_model_is_not_asked_again_once_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verification, "DELAYS", Backoff(0.01, 60.0))
    reported: asyncio.Queue[Key] = asyncio.Queue()
    endpoint = Endpoint("m", 8000)
    spec = {"model": {"id": "org/m", "servedName": "org/m"}, "engine": {"type": "vllm"}}
    asked = Deployment(
        "m",
        "n",
        "u",
        1,
        ModelDeploymentSpec.model_validate(spec),
        annotations={"kubefoundry.ai/verify-endpoint": "answer"},
    )
    live = {"metadata": {"name": "m", "namespace": "n", "uid": "x", "generation": 1}}
    async with serving(Engine({COMPLETION: 503})) as engine:
        verified = Verification(
            lambda namespace, where: models(engine.root),
            lambda work: asyncio.ensure_future(work()),
            reported.put_nowait,
            always=False,
            attempt=lambda namespace, where, model: completion.request_token(engine.root, model),
        )
        verified.verdict(asked, live, endpoint)
        async with asyncio.timeout(SECONDS):
            await reported.get()
        assert "is answered by /v1/completions 503" in str(verified.verdict(asked, live, endpoint))

        engine.statuses[COMPLETION] = 200

        async with asyncio.timeout(SECONDS):
            await reported.get()
        assert verified.verdict(asked, live, endpoint) is None
        count = len(engine.asked)
        assert verified.verdict(asked, live, endpoint) is None
        assert len(engine.asked) == count
