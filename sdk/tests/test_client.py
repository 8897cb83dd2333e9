"""The requests of the client, and how it reads the responses."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._cluster import client, transport
from kubefoundry_sdk._cluster.client import Client, behind
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._cluster.errors import LONGEST, ApiError, Fenced, ForeignAnswer, Unreachable
from support.wire import Asked, events, ok, refusal, wire

MODELS = Kind("acme.io", "v1", "models", "Model")
MODEL: dict[str, Any] = {"metadata": {"name": "m", "namespace": "n"}}


async def test_only_the_very_object_is_deleted() -> None:
    async with wire(lambda asked: ok()) as api:
        await api.client.delete(MODELS, "m", "n", uid="u")

    [asked] = api.asked
    assert (asked.method, asked.path) == ("DELETE", "/apis/acme.io/v1/namespaces/n/models/m")
    assert asked.body["preconditions"] == {"uid": "u"}
    assert asked.body["propagationPolicy"] == "Background"


@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        pytest.param({}, {"force": "true"}, id="takes fields over"),
        pytest.param({"force": False}, {"force": "false"}, id="takes none over"),
        pytest.param({"dry_run": True}, {"force": "true", "dryRun": "All"}, id="stores nothing"),
    ],
)
async def test_client_applies_strictly_with_its_manager(
    arguments: dict[str, bool], query: dict[str, str]
) -> None:
    async with wire(lambda asked: ok(MODEL)) as api:
        await api.client.apply(MODELS, MODEL, manager="me", **arguments)

    [asked] = api.asked
    assert (asked.method, asked.path) == ("PATCH", "/apis/acme.io/v1/namespaces/n/models/m")
    assert asked.query == {"fieldManager": "me", "fieldValidation": "Strict", **query}
    assert asked.body == MODEL


async def test_list_reads_each_page_with_the_current_token() -> None:
    def answer(asked: Asked) -> web.Response:
        more = "continue" not in asked.query
        meta = {"resourceVersion": "9", **({"continue": "next"} if more else {})}
        return ok({"metadata": meta, "items": [{"first": more}]})

    async with wire(answer) as api:
        listing = await api.client.list(MODELS)

    assert listing == ([{"first": True}, {"first": False}], "9")
    assert [asked.query.get("continue") for asked in api.asked] == [None, "next"]
    assert [asked.token for asked in api.asked] == ["token-0", "token-1"]


async def test_client_watch_reads_events_of_any_length() -> None:
    reported = [("ADDED", {"text": "a" * 2**18}), ("DELETED", {"text": "b"})]
    async with wire(lambda asked: events(*reported)) as api:
        seen = [
            (event["type"], event["object"])
            async for event in api.client.watch(MODELS, resource_version="7", seconds=1, silence=5)
        ]

    assert seen == reported
    assert api.asked[0].query["resourceVersion"] == "7"
    assert api.asked[0].query["allowWatchBookmarks"] == "true"


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        pytest.param(refusal(429, "TooManyRequests", retry_after=7), 7.0, id="header"),
        pytest.param(
            web.json_response(
                {"kind": "Status", "code": 503, "details": {"retryAfterSeconds": 3}}, status=503
            ),
            3.0,
            id="details",
        ),
        pytest.param(refusal(500, "InternalError"), None, id="neither"),
        pytest.param(
            web.Response(text="panic", status=500, headers={"Audit-Id": "7"}), None, id="plain text"
        ),
        pytest.param(refusal(503, "Unavailable", retry_after=86400), LONGEST, id="a day"),
        *(
            pytest.param(
                web.Response(text="no", status=503, headers={"Retry-After": header, "Audit-Id": "7"}),
                seconds,
                id=f"header {header[:9]}",
            )
            for header, seconds in (
                ("Wed, 21 Oct 2026 07:28:00 GMT", None),
                ("-1", None),
                ("nan", None),
                ("9" * 400, LONGEST),
                ("²", None),
            )
        ),
        *(
            pytest.param(
                web.json_response({"kind": "Status", **reported}, status=500),
                seconds,
                id=f"status {reported}"[:40],
            )
            for reported, seconds in (
                ({"details": {"retryAfterSeconds": 86400}}, LONGEST),
                ({"details": {"retryAfterSeconds": "soon"}}, None),
                ({"details": {"retryAfterSeconds": [1]}}, None),
                ({"details": [1]}, None),
                ({"code": "x", "reason": 1, "message": {"a": 1}}, None),
            )
        ),
    ],
)
async def test_how_long_the_server_asks_to_wait(answer: web.Response, seconds: float | None) -> None:
    async with wire(lambda asked: answer) as api:
        with pytest.raises(ApiError) as raised:
            await api.client.get(MODELS, "m", "n")

    assert (raised.value.code, raised.value.retry_after) == (answer.status, seconds)


@pytest.mark.parametrize("code", [400, 403, 413, 422])
def test_status_code_means_rejected_content(code: int) -> None:
    assert ApiError(code, "Whatever", "").rejected


@pytest.mark.parametrize("code", [401, 404, 408, 409, 410, 429, 500, 503])
def test_temporary_api_error_is_no_rejection(code: int) -> None:
    assert not ApiError(code, "Whatever", "").rejected


def test_undeclared_field_is_rejected_content() -> None:
    undeclared = (
        "failed to create typed patch object (n/m; x.io/v1, Kind=X): .spec.a: field not declared in schema"
    )

    assert ApiError(500, "Unknown", undeclared).rejected
    assert not ApiError(500, "InternalError", "conversion webhook failed").rejected


NOT_ITS_OWN: dict[str, str] = {
    "nothing to speak of": "-",
    "a page of a proxy": "<html><body>please log in</body></html>",
    "a list": "[]",
    "a word": '"ok"',
    "null": "null",
    "an empty map": "{}",
    "no name": '{"metadata": {"name": null, "uid": "u"}}',
    "half an object": '{"metadata": {"resourceVersion"',
    "metadata that is none": '{"metadata": [], "items": []}',
    "items that are none": '{"metadata": {"resourceVersion": "1"}, "items": {"a": 1}}',
    "a list without a version": '{"metadata": {}, "items": []}',
    "a list of another version": '{"metadata": {"resourceVersion": "new"}, "items": []}',
    "brackets without end": "[" * 100_000,
    "another coding": "\x00\xff",
}


@pytest.mark.parametrize("text", NOT_ITS_OWN.values(), ids=NOT_ITS_OWN)
@pytest.mark.parametrize(
    "ask",
    [
        lambda it: it.list(MODELS),
        lambda it: watched(it),
        lambda it: it.get(MODELS, "m", "n"),
        lambda it: it.get_metadata(MODELS, "m", "n"),
        lambda it: it.create(MODELS, MODEL, manager="t"),
        lambda it: it.replace(MODELS, MODEL, manager="t"),
        lambda it: it.apply(MODELS, MODEL, manager="t"),
        lambda it: it.apply_status(MODELS, MODEL, manager="t"),
        lambda it: it.json_patch(MODELS, "m", "n", [], manager="t"),
    ],
    ids=["list", "watch", "get", "get metadata", "create", "replace", "apply", "apply status", "patch"],
)
async def test_client_rejects_response_that_is_no_api_servers(
    text: str, ask: Callable[[Client], Awaitable[Any]]
) -> None:
    async with wire(lambda asked: web.Response(text=f"{text}\n")) as api:
        with pytest.raises(Unreachable):
            await ask(api.client)


async def watched(it: Client) -> None:
    async for _ in it.watch(MODELS, resource_version="7", seconds=1, silence=5):
        pass


async def test_credentials_that_fail_are_no_answer() -> None:
    def token() -> str:
        raise FileNotFoundError("token")

    async with Client(Credentials("http://nobody.invalid", None, token), user_agent="t") as api:
        with pytest.raises(Unreachable, match="no token"):
            await api.get(MODELS, "m", "n")
        with pytest.raises(Unreachable, match="no token"):
            await watched(api)


@pytest.mark.parametrize("token", ["a\nb", "a\r\nHost: b", "a\0", "a\x1b[31m"])
async def test_client_rejects_token_that_fits_no_header(token: str) -> None:
    async with Client(Credentials("http://nobody.invalid", None, lambda: token), user_agent="t") as api:
        with pytest.raises(Unreachable, match="no token"):
            await api.get(MODELS, "m", "n")


async def test_unanswered_request_names_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "DEADLINE", 0.1)
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with Client(Credentials(url, None, lambda: None), user_agent="t") as api:
            with pytest.raises(Unreachable, match=r"^POST .*: TimeoutError$"):
                await api.create(MODELS, MODEL, manager="t")


async def test_client_lists_fewer_large_objects_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PAGE_BYTES", 10_000)
    large = {"metadata": {"name": "l"}, "text": "x" * 3000}
    objects = [{"metadata": {"name": "s"}}] * 700 + [large] * 40 + [{"metadata": {"name": "s"}}] * 300

    def answer(asked: Asked) -> web.Response:
        start, limit = int(asked.query.get("continue", 0)), int(asked.query["limit"])
        end = start + limit
        more = {"continue": str(end)} if end < len(objects) else {}
        return ok({"metadata": {"resourceVersion": "9", **more}, "items": objects[start:end]})

    async with wire(answer) as api:
        pages = [page async for page, _ in api.client.pages(MODELS)]

    assert [item for page in pages for item in page] == objects
    assert len(api.asked) < 50
    assert max(len(page) for page in pages if large in page) <= 10


async def test_client_rejects_object_above_every_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ANSWER", 10_000)
    monkeypatch.setattr(client, "PAGE_BYTES", 5_000)
    body = {"metadata": {"resourceVersion": "9"}, "items": [{"text": "x" * 20_000}]}

    async with wire(lambda asked: ok(body)) as api:
        with pytest.raises(Unreachable, match="longer than 10000 bytes"):
            await api.client.list(MODELS)


async def test_client_rejects_number_outside_json() -> None:
    async with wire(lambda asked: ok(MODEL)) as api:
        with pytest.raises(ApiError, match="cannot be sent") as raised:
            await api.client.apply(MODELS, {**MODEL, "spec": {"a": math.nan}}, manager="me")

    assert raised.value.rejected
    assert api.asked == []


async def test_client_checks_the_fence_again_once_connected() -> None:
    """As often as there are connections and more: a refused write gives its own back."""
    asked_for = 0

    def fence() -> None:
        nonlocal asked_for
        asked_for += 1
        if asked_for % 2 == 0:
            raise Fenced("thawed too late")

    async with wire(lambda asked: ok(MODEL)) as api:
        fenced = behind(api.client, fence)
        for _ in range(100):
            with pytest.raises(Fenced):
                await fenced.apply(MODELS, MODEL, manager="me")
        await fenced.get(MODELS, "m", "n")

    assert [asked.method for asked in api.asked] == ["GET"]
    assert asked_for == 200


async def read_lines(it: Client) -> None:
    async for _ in it.lines("/x"):
        pass


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "ask",
    [
        lambda it: it.get(MODELS, "m", "n"),
        lambda it: it.list(MODELS),
        lambda it: it.read("/x"),
        lambda it: it.send("/x", {}),
        lambda it: it.apply(MODELS, MODEL, manager="t"),
        lambda it: it.delete(MODELS, "m", "n", uid="u"),
        read_lines,
        watched,
    ],
    ids=["get", "list", "read", "send", "apply", "delete", "lines", "watch"],
)
async def test_redirect_is_not_followed(ask: Callable[[Client], Awaitable[Any]], status: int) -> None:
    async with wire(lambda asked: ok(MODEL)) as elsewhere:
        headers = {"Location": f"{elsewhere.client.server}/secret"}
        async with wire(
            lambda asked: web.Response(status=status, headers=headers, text="tenant's words")
        ) as api:
            with pytest.raises(ForeignAnswer, match=rf"redirect \({status}\)") as raised:
                await ask(api.client)

    assert elsewhere.asked == []
    assert "tenant" not in str(raised.value)
    assert "secret" not in str(raised.value)


async def test_cookie_of_a_response_is_not_sent_back() -> None:
    cookies = []

    async def handle(request: web.Request) -> web.Response:
        cookies.append(request.headers.get("Cookie"))
        return web.json_response(MODEL, headers={"Set-Cookie": "tenant=secret; Path=/"})

    app = web.Application()
    app.router.add_get("/{path:.*}", handle)
    async with TestServer(app) as server:
        # aiohttp keeps no cookies of an IP address.
        url = f"http://localhost:{server.port}"
        async with Client(Credentials(url, None, lambda: None), user_agent="t") as api:
            await api.get(MODELS, "m", "n")
            await api.get(MODELS, "m", "n")

    assert cookies == [None, None]


@pytest.mark.parametrize(
    ("response", "error"),
    [
        pytest.param(refusal(404, "NotFound"), ApiError, id="object"),
        (web.Response(text="404 page not found\n", status=404, headers={"Audit-Id": "1"}), ApiError),
        pytest.param(web.Response(text="<html>not found", status=404), ForeignAnswer, id="page"),
        pytest.param(web.json_response({"error": "no route"}, status=404), ForeignAnswer, id="json"),
    ],
)
async def test_404_of_another_server_is_no_missing_object(
    response: web.Response, error: type[Exception]
) -> None:
    async with wire(lambda asked: response) as api:
        with pytest.raises(error):
            await api.client.get(MODELS, "m", "n")


@pytest.mark.parametrize("status", [400, 401, 403, 407, 429, 500, 502, 503, 504])
async def test_page_of_a_proxy_is_no_refusal(status: int) -> None:
    page = web.Response(text="<html>Blocked", status=status, content_type="text/html")

    async with wire(lambda asked: page) as api:
        with pytest.raises(ForeignAnswer, match=rf"a {status} \(text/html"):
            await api.client.get(MODELS, "m", "n")


@pytest.mark.parametrize(
    "status", [402, 403, 404, 405, 406, 407, 408, 409, 410, 413, 415, 422, 451, 500, 501, 502, 503, 504]
)
@pytest.mark.parametrize("text", ["no healthy upstream\n", '"Forbidden"', "", "404 page not found\n"])
async def test_plain_text_of_a_proxy_is_no_refusal(status: int, text: str) -> None:
    """An API server sends these codes as a Status, or with an Audit-Id: a plain 403 reports no missing permission."""
    async with wire(lambda asked: web.Response(text=text, status=status)) as api:
        with pytest.raises(ForeignAnswer, match=rf"a {status} \(text/plain") as raised:
            await api.client.get(MODELS, "m", "n")

    assert raised.value.code == status
    assert " ".join(text.strip('"\n').split()) in str(raised.value)


@pytest.mark.parametrize("status", [400, 403, 409, 429, 500, 502, 503, 504])
async def test_json_of_a_proxy_is_no_refusal(status: int) -> None:
    async with wire(lambda asked: web.json_response({"error": "no"}, status=status)) as api:
        with pytest.raises(ForeignAnswer, match=rf"a {status} \(application/json"):
            await api.client.get(MODELS, "m", "n")


@pytest.mark.parametrize("status", [400, 401, 405, 429, 500, 503])
@pytest.mark.parametrize(("text", "said"), [("later", "later"), ("", "HTTP status {} without a text")])
async def test_plain_text_of_a_refusal_is_kept(status: int, text: str, said: str) -> None:
    """The API server itself sends plain text, as in "Too many requests, please try again later."."""
    response = web.Response(text=text, status=status, headers={"Audit-Id": "7"})
    async with wire(lambda asked: response) as api:
        with pytest.raises(ApiError) as raised:
            await api.client.get(MODELS, "m", "n")

    assert raised.value.message == said.format(status)
