"""What goes over the wire, and what is made of the answers."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from kubefoundry_sdk.api.kinds import Kind
from kubefoundry_sdk.cluster.errors import ApiError
from support.wire import Asked, events, ok, refusal, wire

MODELS = Kind("acme.io", "v1", "models", "Model")
MODEL: dict[str, Any] = {"metadata": {"name": "m", "namespace": "n"}}


async def test_only_the_very_object_is_deleted() -> None:
    async with wire(lambda asked: ok()) as made:
        await made.client.delete(MODELS, "m", "n", uid="u")

    [asked] = made.asked
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
async def test_an_apply_is_strict_and_names_its_manager(
    arguments: dict[str, bool], query: dict[str, str]
) -> None:
    async with wire(lambda asked: ok(MODEL)) as made:
        await made.client.apply(MODELS, MODEL, manager="me", **arguments)

    [asked] = made.asked
    assert (asked.method, asked.path) == ("PATCH", "/apis/acme.io/v1/namespaces/n/models/m")
    assert asked.query == {"fieldManager": "me", "fieldValidation": "Strict", **query}
    assert asked.body == MODEL


async def test_a_listing_is_read_page_by_page_each_with_the_token_of_that_moment() -> None:
    def answer(asked: Asked) -> web.Response:
        more = "continue" not in asked.query
        meta = {"resourceVersion": "9", **({"continue": "next"} if more else {})}
        return ok({"metadata": meta, "items": [{"first": more}]})

    async with wire(answer) as made:
        found = await made.client.list(MODELS)

    assert found == ([{"first": True}, {"first": False}], "9")
    assert [asked.query.get("continue") for asked in made.asked] == [None, "next"]
    assert [asked.token for asked in made.asked] == ["token-0", "token-1"]


async def test_a_watch_tells_events_of_any_length() -> None:
    told = [("ADDED", {"text": "a" * 2**18}), ("DELETED", {"text": "b"})]
    async with wire(lambda asked: events(*told)) as made:
        seen = [
            (event["type"], event["object"])
            async for event in made.client.watch(MODELS, resource_version="7", seconds=1, silence=5)
        ]

    assert seen == told
    assert made.asked[0].query["resourceVersion"] == "7"
    assert made.asked[0].query["allowWatchBookmarks"] == "true"


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
        pytest.param(web.Response(text="<html>", status=502), None, id="something in between"),
    ],
)
async def test_how_long_the_server_asks_to_wait(answer: web.Response, seconds: float | None) -> None:
    async with wire(lambda asked: answer) as made:
        with pytest.raises(ApiError) as raised:
            await made.client.get(MODELS, "m", "n")

    assert (raised.value.code, raised.value.retry_after) == (answer.status, seconds)


@pytest.mark.parametrize("code", [400, 403, 413, 422])
def test_a_refused_content(code: int) -> None:
    assert ApiError(code, "Whatever", "").rejected


@pytest.mark.parametrize("code", [401, 404, 408, 409, 410, 429, 500, 503])
def test_what_says_something_about_the_moment_only(code: int) -> None:
    assert not ApiError(code, "Whatever", "").rejected


def test_a_field_that_the_schema_does_not_declare_is_rejected_content() -> None:
    undeclared = (
        "failed to create typed patch object (n/m; x.io/v1, Kind=X): .spec.a: field not declared in schema"
    )

    assert ApiError(500, "Unknown", undeclared).rejected
    assert not ApiError(500, "InternalError", "conversion webhook failed").rejected
